// All families: what a pass that builds graphs includes.
#pragma once

#include "ops/collective.h"
#include "ops/combining/attention.h"
#include "ops/combining/convolution.h"
#include "ops/combining/fourier.h"
#include "ops/combining/product.h"
#include "ops/combining/reduction.h"
#include "ops/combining/scan.h"
#include "ops/complex.h"
#include "ops/elementwise.h"
#include "ops/identity.h"
#include "ops/loop.h"
#include "ops/moving/index.h"
#include "ops/moving/movement.h"
#include "ops/moving/sampling.h"
#include "ops/moving/window.h"
#include "ops/source.h"
