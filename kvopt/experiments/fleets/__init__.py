"""How many machines a fleet needs: what is possible with each number, and what is proved not to be."""
