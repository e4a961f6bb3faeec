// All families: what a pass that builds graphs includes.
#pragma once

#include "ops/attention.h"
#include "ops/collective.h"
#include "ops/complex.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/fourier.h"
#include "ops/identity.h"
#include "ops/index.h"
#include "ops/loop.h"
#include "ops/movement.h"
#include "ops/product.h"
#include "ops/reduction.h"
#include "ops/sampling.h"
#include "ops/scan.h"
#include "ops/source.h"
#include "ops/window.h"
