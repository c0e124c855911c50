"""What hot loops and solvers need: compiled code, random numbers, memory, releases known as bad."""
