#include "kernels/isa.h"
