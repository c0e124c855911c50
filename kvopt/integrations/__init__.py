"""Code that runs inside other programs; importing it loads none of them."""
