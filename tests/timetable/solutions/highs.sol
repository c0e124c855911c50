Model status
Optimal

# Primal solution values
Feasible
Objective 12
# Columns 34
x_r0_0 1
x_r0_1 0
x_r0_2 0
x_r0_3 0
x_r0_4 0
x_r0_5 0
x_r0_6 0
x_r0_7 0
x_r0_8 0
x_r0_9 0
x_r1_0 1
x_r1_1 0
x_r1_2 0
x_r1_3 0
x_r1_4 0
x_r1_5 0
x_r1_6 0
x_r1_7 0
x_r1_8 0
x_r2_0 1
x_r2_1 0
x_r2_2 0
x_r2_3 0
x_r2_4 0
x_r2_5 0
x_r2_6 0
x_r2_7 0
x_r3_0 0
x_r3_1 0
x_r3_2 1
x_r3_3 0
x_r3_4 0
x_r3_5 0
x_r3_6 0
# Rows 14
start_r0 1
start_r1 1
start_r2 1
start_r3 1
memory_1 6
memory_2 6
memory_3 6
memory_4 3
memory_5 4
memory_6 5
memory_7 0
memory_8 0
memory_9 0
memory_10 0

# Dual solution values
None

# Basis
HiGHS_basis_file v2
None
