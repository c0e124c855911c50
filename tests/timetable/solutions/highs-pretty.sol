Columns
    Index Status        Lower        Upper       Primal         Dual  Type        Name
        0                   0            1            1               Integer     x_r0_0
        1                   0            1            0               Integer     x_r0_1
        2                   0            1            0               Integer     x_r0_2
        3                   0            1            0               Integer     x_r0_3
        4                   0            1            0               Integer     x_r0_4
        5                   0            1            0               Integer     x_r0_5
        6                   0            1            0               Integer     x_r0_6
        7                   0            1            0               Integer     x_r0_7
        8                   0            1            0               Integer     x_r0_8
        9                   0            1            0               Integer     x_r0_9
       10                   0            1            1               Integer     x_r1_0
       11                   0            1            0               Integer     x_r1_1
       12                   0            1            0               Integer     x_r1_2
       13                   0            1            0               Integer     x_r1_3
       14                   0            1            0               Integer     x_r1_4
       15                   0            1            0               Integer     x_r1_5
       16                   0            1            0               Integer     x_r1_6
       17                   0            1            0               Integer     x_r1_7
       18                   0            1            0               Integer     x_r1_8
       19                   0            1            1               Integer     x_r2_0
       20                   0            1            0               Integer     x_r2_1
       21                   0            1            0               Integer     x_r2_2
       22                   0            1            0               Integer     x_r2_3
       23                   0            1            0               Integer     x_r2_4
       24                   0            1            0               Integer     x_r2_5
       25                   0            1            0               Integer     x_r2_6
       26                   0            1            0               Integer     x_r2_7
       27                   0            1            0               Integer     x_r3_0
       28                   0            1            0               Integer     x_r3_1
       29                   0            1            1               Integer     x_r3_2
       30                   0            1            0               Integer     x_r3_3
       31                   0            1            0               Integer     x_r3_4
       32                   0            1            0               Integer     x_r3_5
       33                   0            1            0               Integer     x_r3_6
Rows
    Index Status        Lower        Upper       Primal         Dual  Name
        0                   1            1            1               start_r0
        1                   1            1            1               start_r1
        2                   1            1            1               start_r2
        3                   1            1            1               start_r3
        4                -inf            7            6               memory_1
        5                -inf            7            6               memory_2
        6                -inf            7            6               memory_3
        7                -inf            7            3               memory_4
        8                -inf            7            4               memory_5
        9                -inf            7            5               memory_6
       10                -inf            7            0               memory_7
       11                -inf            7            0               memory_8
       12                -inf            7            0               memory_9
       13                -inf            7            0               memory_10

Model status: Optimal

Objective value: 12
