"""Tools of hot loops and solvers: compilation, random numbers, memory, refused releases."""
