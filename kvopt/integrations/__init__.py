"""What runs inside other programs; importing it loads none of them."""
