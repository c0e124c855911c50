objective value:                                   12
x_r0_0                                              1 	(obj:1)
x_r1_0                                              1 	(obj:2)
x_r2_0                                              1 	(obj:3)
x_r3_2                                              1 	(obj:6)
