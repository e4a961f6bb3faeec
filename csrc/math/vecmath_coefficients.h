// Minimax polynomials, lowest degree first. Written by coefficients.py: change that.
// The number of bits is -log2 of the largest error, weighted as coefficients.py says.
#pragma once

namespace gradcell::coefficients {

/// (exp(r) - 1 - r) / r^2, |r| <= log(2)/2: 60.5 bits
inline constexpr double kExp64[11] = {
    0x1.0000000000000p-1,  0x1.555555555555cp-3,  0x1.555555555555ep-5,  0x1.111111110ebb5p-7,
    0x1.6c16c16c135cdp-10, 0x1.a01a01b3ba5c9p-13, 0x1.a01a01b43f210p-16, 0x1.71ddef955a9d3p-19,
    0x1.27e4bf6089be1p-22, 0x1.af6ccaab3e991p-26, 0x1.1f9da6c10b6aap-29};

/// the same, short: 32.0 bits
inline constexpr double kExp32[6] = {0x1.00000027e1c42p-1,  0x1.5555558947f43p-3,
                                     0x1.5554adce60499p-5,  0x1.11108f8c0bb98p-7,
                                     0x1.6d748b0987a15p-10, 0x1.a1a139f78941fp-13};

/// the same, in float: 28.1 bits
inline constexpr float kExpFloat[5] = {0x1.0000000000000p-1f, 0x1.55548e0000000p-3f,
                                       0x1.5554620000000p-5f, 0x1.123b540000000p-7f,
                                       0x1.6db1ca0000000p-10f};

/// (tanh(x) - x) / x^3 in x^2, |x| <= 0.625: 56.4 bits
inline constexpr double kTanh64[11] = {
    -0x1.5555555555503p-2,  0x1.111111110b0a1p-3,  -0x1.ba1ba1b52f42cp-5,  0x1.664f4781a57d4p-6,
    -0x1.226e16d1a4775p-7,  0x1.d6cf3b9637eb7p-9,  -0x1.7d695f87ee7d2p-10, 0x1.336a9e39549afp-11,
    -0x1.df7842af21b90p-13, 0x1.43dc416d90531p-14, -0x1.0e3320d6a02afp-16};

/// the same, |x| <= 0.9, in float: 28.4 bits
inline constexpr float kTanhFloat[7] = {
    -0x1.55554e0000000p-2f, 0x1.110f4e0000000p-3f, -0x1.b9cd060000000p-5f, 0x1.6305b80000000p-6f,
    -0x1.0f21260000000p-7f, 0x1.53a74a0000000p-9f, -0x1.e0c8040000000p-12f};

/// (2 atanh(f) - 2f - 2f^3/3) / f^5 in f^2: 71.6 bits
inline constexpr double kAtanh64[8] = {
    0x1.9999999999996p-2, 0x1.2492492493035p-2, 0x1.c71c71c580658p-3, 0x1.745d183254774p-3,
    0x1.3b1362b57fd4cp-3, 0x1.1120b5b99a8bfp-3, 0x1.de336c5aaab7bp-4, 0x1.eb114994baf39p-4};

/// (log(1+g) - g) / g^2, 1+g in [sqrt(1/2), sqrt(2)]: 35.7 bits
inline constexpr double kLog32[12] = {
    -0x1.000000014093ap-1, 0x1.555555d758adbp-2, -0x1.fffffb2806931p-3, 0x1.99990a95d616fp-3,
    -0x1.5556345381438p-3, 0x1.24ac58d28d2b4p-3, -0x1.fffdacc02ab63p-4, 0x1.c2f37ef4c8177p-4,
    -0x1.958b56f6ee47dp-4, 0x1.995c60e2823fdp-4, -0x1.98c851792515cp-4, 0x1.c370c4521e0fcp-5};

/// (sin(x) - x) / x^3 in x^2, |x| <= pi/4: 67.4 bits
inline constexpr double kSin64[7] = {
    -0x1.5555555555555p-3,  0x1.111111111110bp-7,  -0x1.a01a01a018ae4p-13, 0x1.71de3a533975fp-19,
    -0x1.ae64529846854p-26, 0x1.612092b2930cep-33, -0x1.aaa543fe9b265p-41};

/// the same, short: 37.6 bits
inline constexpr double kSin32[4] = {-0x1.5555554cb945cp-3, 0x1.11110895c9f1fp-7,
                                     -0x1.a00f9d3f96fe4p-13, 0x1.6cd83fa5d5bdbp-19};

/// the same, in float: 33.2 bits
inline constexpr float kSinFloat[4] = {-0x1.5555560000000p-3f, 0x1.1111080000000p-7f,
                                       -0x1.a00f9e0000000p-13f, 0x1.6cd8400000000p-19f};

/// (cos(x) - 1 + x^2/2) / x^4 in x^2, |x| <= pi/4: 69.6 bits
inline constexpr double kCos64[7] = {
    0x1.5555555555555p-5,  -0x1.6c16c16c16c10p-10, 0x1.a01a01a018de9p-16, -0x1.27e4fb75fd682p-22,
    0x1.1eed8ca39a897p-29, -0x1.93933830a07d6p-37, 0x1.aac5a5769df4fp-45};

/// the same, short: 43.2 bits
inline constexpr double kCos32[4] = {0x1.5555554f4d1aep-5, -0x1.6c16b89797a23p-10,
                                     0x1.a0111f63aa77dp-16, -0x1.242aaecfb56dfp-22};

/// the same, in float: 33.3 bits
inline constexpr float kCosFloat[3] = {0x1.55554a0000000p-5f, -0x1.6c0c8c0000000p-10f,
                                       0x1.9a024c0000000p-16f};

/// (atan(x) - x) / x^3 in x^2, |x| <= tan(pi/8): 63.5 bits
inline constexpr double kAtan64[12] = {
    -0x1.5555555555554p-2, 0x1.999999999965ap-3, -0x1.2492492475d5cp-3, 0x1.c71c71b778d7ap-4,
    -0x1.745d14bfcec1bp-4, 0x1.3b136eaeb7043p-4, -0x1.110c79d67b354p-4, 0x1.e172830a22e97p-5,
    -0x1.ab80a6d087fdcp-5, 0x1.70f995dba084fp-5, -0x1.12535f07dc49ap-5, 0x1.f25550cf2a293p-7};

/// the same, short: 35.4 bits
inline constexpr double kAtan32[6] = {-0x1.555554c89c0efp-2, 0x1.99991a460e821p-3,
                                      -0x1.247f05f681f37p-3, 0x1.c467f049eedd0p-4,
                                      -0x1.5b44f60ef60e8p-4, 0x1.84f3b1ef8ffc4p-5};

/// (asin(x) - x) / x^3 in x^2, |x| <= 1/2: 63.6 bits
inline constexpr double kAsin64[14] = {
    0x1.5555555555553p-3,  0x1.3333333333a68p-4, 0x1.6db6db6d4648ep-5,  0x1.f1c71ca94726cp-6,
    0x1.6e8b9acf62497p-6,  0x1.1c4f884cf53c1p-6, 0x1.c98090337c0ccp-7,  0x1.7ba755796e7d5p-7,
    0x1.36ad1aac20a9dp-7,  0x1.4874c97205380p-7, 0x1.4d1d93e95e997p-11, 0x1.9871526cbf3b8p-6,
    -0x1.ae9eb6980b47bp-6, 0x1.143e25efeddfbp-5};

/// the same, short: 35.8 bits
inline constexpr double kAsin32[7] = {
    0x1.55555609c5f76p-3, 0x1.3332a799cda52p-4, 0x1.6ddb3e8176d31p-5, 0x1.ed512f71d27dbp-6,
    0x1.9368307c03703p-6, 0x1.e8bd11383c2d9p-8, 0x1.1c52730aa3b7ep-5};

/// (erf(x)/x - 2/sqrt(pi)) / x^2 in x^2, |x| <= 1: 57.9 bits
inline constexpr double kErf64[14] = {
    -0x1.812746b0379e7p-2,  0x1.ce2f21a042be2p-4,  -0x1.b82ce31288b49p-6,  0x1.565bcd0e6a329p-8,
    -0x1.c02db40036bd3p-11, 0x1.f9a326f7c9d74p-14, -0x1.f4d25bfca3298p-17, 0x1.b9e6c3c3d165ep-20,
    -0x1.5f73c66ee99c2p-23, 0x1.fcbb620816caep-27, -0x1.517e12f9aa6d8p-30, 0x1.9a19ada540316p-34,
    -0x1.b43ea6090cbaep-38, 0x1.3c6b1735789ccp-42};

/// the same, short: 40.1 bits
inline constexpr double kErf32[8] = {
    -0x1.812746aeac21dp-2,  0x1.ce2f20d61784fp-4,  -0x1.b82cbfb346065p-6,  0x1.5658ccfec0b54p-8,
    -0x1.bfe5500be6d04p-11, 0x1.f5a144ae09babp-14, -0x1.d3584c888dc98p-17, 0x1.1d70c4bc3dd3ap-20};

/// the same, |x| <= 1/2, in float: 32.2 bits
inline constexpr float kErfFloat[5] = {-0x1.8127460000000p-2f, 0x1.ce2efa0000000p-4f,
                                       -0x1.b8212e0000000p-6f, 0x1.54e0500000000p-8f,
                                       -0x1.9421240000000p-11f};

/// the same, |x| <= 0.93, in float: 28.8 bits
inline constexpr float kErfNearFloat[7] = {
    -0x1.8127460000000p-2f,  0x1.ce2f180000000p-4f,  -0x1.b82b7c0000000p-6f, 0x1.5640d40000000p-8f,
    -0x1.bdff4c0000000p-11f, 0x1.e07b160000000p-14f, -0x1.59413c0000000p-17f};
inline constexpr float kErfNearFloatLow = -0x1.3a4ee20000000p-27f;

/// exp(x^2) erfc(x) in x - 2, 0.93 <= x <= 3.95, for 1 - erf(x), in float: 29.5 bits
inline constexpr float kErfRestFloat[10] = {0x1.0586700000000p-2f,  -0x1.b570080000000p-4f,
                                            0x1.5677700000000p-5f,  -0x1.fa891a0000000p-7f,
                                            0x1.63b5580000000p-8f,  -0x1.e6779a0000000p-10f,
                                            0x1.3c33980000000p-11f, -0x1.3095c40000000p-13f,
                                            0x1.09ed780000000p-14f, -0x1.16e3c40000000p-15f};

/// (1+2x) exp(x^2) erfc(x) in (x-K)/(x+K), x <= 28: 59.7 bits
inline constexpr double kErfc64[24] = {
    0x1.3ccda0b5d5dc2p+0,  -0x1.1f367683f89a7p-3,  0x1.d5f2948159d92p-9,   0x1.510169d096801p-4,
    -0x1.bda9309a289adp-4, 0x1.7a14188a99b96p-4,   -0x1.e0d0fa6dfc6dcp-5,  0x1.d0b0037dca3f4p-6,
    -0x1.3f603c34dd25fp-7, 0x1.cc3a0e2402aecp-10,  0x1.33fb25ef78506p-12,  -0x1.303f9dcd27bcep-12,
    0x1.b143f869b9869p-15, 0x1.778a3d039f782p-16,  -0x1.8003424f2dda8p-17, -0x1.0529f9235d47ap-20,
    0x1.d63e8e41fe37ap-20, -0x1.f3227d363fd95p-25, -0x1.15153c7f53392p-22, 0x1.9cef8a4aa92c0p-26,
    0x1.4010f75b0aad5p-25, -0x1.1bdf5008d60f2p-28, -0x1.0d6aaf6c49fd4p-28, 0x1.b38b97399a7e1p-32};
inline constexpr double kErfc64Low = 0x1.e5c4b33e873acp-54;

/// the same, x <= 10.5, short: 35.8 bits
inline constexpr double kErfc32[13] = {
    0x1.3ccda0b5d6373p+0,  -0x1.1f36767784870p-3, 0x1.d5f2947446173p-9,  0x1.51016245add26p-4,
    -0x1.bda93432c7795p-4, 0x1.7a14bdb5c5bb2p-4,  -0x1.e0cfd5129c42cp-5, 0x1.d098e05786a24p-6,
    -0x1.3f9b5707cf441p-7, 0x1.d1bd9e288e430p-10, 0x1.5a265a7ca0eccp-12, -0x1.48a7e170b59a9p-12,
    -0x1.0fd69f4637c82p-16};

/// the same, K = 2, x <= 10.1, in float: 27.6 bits
inline constexpr float kErfcFloat[11] = {
    0x1.46e80e0000000p+0f,   -0x1.7bf5ea0000000p-4f, -0x1.5407ba0000000p-3f,
    0x1.4ff9d60000000p-3f,   -0x1.bc2db00000000p-5f, -0x1.06ffcc0000000p-7f,
    0x1.1e15780000000p-7f,   0x1.409e0a0000000p-10f, -0x1.84503e0000000p-10f,
    -0x1.5019680000000p-12f, 0x1.e299180000000p-13f};
inline constexpr float kErfcFloatLow = 0x1.0a243e0000000p-27f;

/// exp(x^2/2) ndtr(-x) in x - 2, x <= 4, in float: 23.2 bits
inline constexpr float kNdtrFloat[13] = {
    0x1.5845dc0000000p-3f,   -0x1.00f9c40000000p-4f,  0x1.5d305e0000000p-6f,
    -0x1.b769600000000p-8f,  0x1.02fb800000000p-9f,   -0x1.1fed6c0000000p-11f,
    0x1.3205520000000p-13f,  -0x1.3f2ff60000000p-15f, 0x1.2fd9e60000000p-17f,
    -0x1.be3d960000000p-20f, 0x1.c722060000000p-22f,  -0x1.928e720000000p-23f,
    0x1.33d14c0000000p-25f};

/// erfinv(x)/x in w - 1, w = -log(1-x^2) <= 5: 53.6 bits
inline constexpr double kErfinv64[23] = {
    0x1.209b9bb73e395p+0,   0x1.fb8fccc60651fp-3,   0x1.16931130fad12p-8,   -0x1.3779be7c1cc42p-9,
    0x1.a3f0f04a30242p-14,  0x1.4075e58013b73p-15,  -0x1.1eee00d3e8588p-18, -0x1.2f73f69cd8a6ep-21,
    0x1.06ac8f769f389p-23,  0x1.9f1327a71b058p-28,  -0x1.9fa3861a22934p-29, 0x1.23a61e1af5f1cp-36,
    0x1.293eb9caf07bbp-34,  -0x1.05d57ade23166p-38, -0x1.8057292c81429p-40, 0x1.52efc0041d356p-43,
    0x1.cd5425714414fp-46,  -0x1.644408044b7c0p-48, -0x1.2bd1c77bc0e37p-51, 0x1.22c6da7e03502p-52,
    -0x1.419a5ab20f4a2p-55, 0x1.5ae5a953e9dfep-59,  -0x1.38396f99c0c71p-64};
inline constexpr double kErfinv64Low = -0x1.b1c729630cd04p-55;

/// the same, short: 30.6 bits
inline constexpr double kErfinv32[12] = {
    0x1.209b9bb75506cp+0,  0x1.fb8fcd41b4677p-3,   0x1.16930cc9e98d5p-8,   -0x1.377a74a5c8647p-9,
    0x1.a3fe75dca1adfp-14, 0x1.40b5670766da5p-15,  -0x1.20e796ccd5a16p-18, -0x1.31c7b6eae865bp-21,
    0x1.2a2c06629e101p-23, -0x1.3317b7e4428f4p-29, -0x1.b375653ce7bc4p-30, 0x1.0d42e8ce329b2p-33};

/// erfinv(x)/x - s in s - 3.125, s = sqrt(w) <= 4: 53.4 bits
inline constexpr double kErfinvMiddle64[22] = {
    -0x1.555c3ebcf48cep-3,  0x1.e76a974fde614p-9,   0x1.cde3e1149bf57p-8,   -0x1.5b6833330f046p-8,
    0x1.f1579bbdb5049p-9,   -0x1.4a493b7c4db82p-9,  0x1.4a7a1fd917e33p-10,  -0x1.58a0965b7700fp-12,
    -0x1.779d344601c53p-14, 0x1.1d6edddaf7a58p-13,  -0x1.edafcd0d2cf81p-15, 0x1.250e24ffe54fdp-19,
    0x1.7e82b789bd80dp-17,  -0x1.a4b78e7c084aep-18, 0x1.e498897832ffbp-21,  0x1.8ff4478ae8867p-21,
    -0x1.2a47bf43b0da7p-21, 0x1.29c9ccb08a558p-23,  0x1.c150b70a4083cp-25,  -0x1.9e5c9fa9b27c9p-25,
    0x1.c06b2ddbec083p-29,  0x1.2c8cf0e01a429p-28};

/// the same, short: 29.5 bits
inline constexpr double kErfinvMiddle32[12] = {
    -0x1.555c3ee792756p-3,  0x1.e76acdf740c32p-9,  0x1.cde5d317933c9p-8,   -0x1.5b6b8e07a51efp-8,
    0x1.f11ccbc42696ap-9,   -0x1.4a0c1ce81c185p-9, 0x1.4d03a29beb6c7p-10,  -0x1.60305f6a30d0ep-12,
    -0x1.dcd2872c3369dp-14, 0x1.3b2a41d1f2da0p-13, -0x1.06207aa242240p-15, -0x1.8db78adbc9d69p-17};

/// the same in s - 5, 16 <= w <= 36.1: 55.2 bits
inline constexpr double kErfinvFar64[19] = {
    -0x1.336445ca500a3p-3, 0x1.51868fdd08690p-7,   -0x1.22ea5df1cc326p-13, -0x1.c2f36aa240f92p-13,
    0x1.3ebf4efb29654p-14, -0x1.4a348fc645e9ep-16, 0x1.2fbcfd7d65e3fp-18,  -0x1.0a90724fbe0bcp-20,
    0x1.ebe32326187eap-23, -0x1.222777cba64f6p-24, 0x1.f288e7e2923a2p-26,  -0x1.061042a2faa88p-26,
    0x1.0cbfcc66582b9p-27, -0x1.dd36d136597dbp-29, 0x1.69ae36938dd1ap-30,  -0x1.e0ad020b913b5p-32,
    0x1.327340cca1556p-34, 0x1.7877c0c301782p-35,  -0x1.67200167f8a4fp-36};

}  // namespace gradcell::coefficients
