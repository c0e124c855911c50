Model status
Optimal

# Primal solution values
Feasible
Objective 12
# Columns -4
x_r0_0 1 0
x_r1_0 1 10
x_r2_0 1 19
x_r3_2 1 29
