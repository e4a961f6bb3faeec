"""Index of ops that are imported at first use, by module.

Written by tools/make_table_stubs.py; do not edit."""

MODULES = {
    "arrays.arrangement": """
        adjoint atleast_1d atleast_2d atleast_3d broadcast_tensors column_stack diagflat dsplit
        dstack hsplit mirror_pad moveaxis multi_dot numel ravel reverse_sequence rot90 row_stack
        sequence_mask tensor_split tril_indices triu_indices type_as view_as vsplit""",
    "arrays.assignments": "assign assign_add assign_sub scatter_add scatter_update",
    "arrays.scatters": """
        diagonal_scatter index_fill inplace_add inplace_index_add inplace_sub inplace_update scatter
        scatter_div scatter_max scatter_min scatter_mul scatter_nd_add scatter_nd_div scatter_nd_max
        scatter_nd_min scatter_nd_mul scatter_nd_sub scatter_nd_update select_scatter slice_scatter
        tensor_scatter_div tensor_scatter_max tensor_scatter_min tensor_scatter_mul
        tensor_scatter_sub unsorted_segment_max unsorted_segment_min unsorted_segment_sum""",
    "control.choices": "cond",
    "control.loops": "ForiLoop Scan WhileLoop scan",
    "control.transforms": "derivative jacfwd jacrev jet linearize vmap",
    "elements.bessels": """
        bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1
        bessel_k1e bessel_y0 bessel_y1""",
    "elements.complex_numbers": "angle conj imag is_complex isreal polar real view_as_real",
    "elements.composed": """
        addcdiv addcmul approximate_equal cbrt deg2rad fix float_power frac heaviside
        is_floating_point isposinf logaddexp logaddexp2 nan_to_num positive pows rad2deg sgn signbit
        sinc truncate_div truncate_mod xdivy""",
    "elements.gammas": "digamma igamma igammac lgamma mvlgamma polygamma zeta",
    "elements.integers": """
        bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd
        lcm""",
    "matrices.factorisations": """
        cholesky cholesky_inverse cholesky_solve det eigh inverse logdet matrix_power matrix_solve
        pinv qr slogdet svd tensor_solve""",
    "matrices.fourier": """
        fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2
        ihfftn irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn stft""",
    "matrices.linear_algebra": """
        addbmm addmv addr baddbmm batch_dot block_diag cdist cross einsum kron matrix_diag
        matrix_exp mv vander vecdot""",
    "matrices.norms": "cosine_similarity norm renorm vector_norm",
    "networks.attention": "flash_attention_score",
    "networks.boxes": """
        bounding_box_decode bounding_box_encode check_valid crop_and_resize deformable_conv2d
        depth_to_space grid_sample iou pixel_shuffle pixel_unshuffle space_to_depth""",
    "networks.clipping": "clip_by_global_norm clip_by_norm",
    "networks.convolution": "conv1d conv2d conv3d",
    "networks.ctc": "ctc_loss",
    "networks.interpolation": "interpolate",
    "networks.losses": """
        binary_cross_entropy binary_cross_entropy_with_logits cross_entropy huber_loss kl_div
        l1_loss mse_loss nll_loss smooth_l1_loss softmax_cross_entropy_with_logits
        sparse_softmax_cross_entropy_with_logits""",
    "networks.margins": """
        cosine_embedding_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss
        multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss poisson_nll_loss
        soft_margin_loss triplet_margin_loss""",
    "networks.normalization": "batch_norm layer_norm lrn rms_norm",
    "networks.patches": "fold fractional_max_pool2d fractional_max_pool3d unfold",
    "networks.pooling": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
        adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d
        max_pool2d max_pool3d max_unpool1d max_unpool2d max_unpool3d""",
    "primitives.classes": """
        ACos Abs Acos Acosh Add AddN ArgMaxWithValue ArgMinWithValue Argmax Argmin Asin Asinh Assign
        AssignAdd AssignSub Atan Atan2 Atanh BCEWithLogitsLoss BatchMatMul BiasAdd
        BinaryCrossEntropy BroadcastTo Cast Ceil Concat CopySign Cos Cosh CumSum DType Depend Diag
        Div DivNoNan Dropout Elu Equal Erf Erfc Erfinv Exp Exp2 ExpandDims Expm1 Eye FastGeLU Fill
        Flatten Floor FloorDiv FloorMod Fmod Gather GatherD GatherNd GeLU Ger Greater GreaterEqual
        HSigmoid HSwish HistogramSummary Hypot Identity ImageSummary Inv Invert IsClose IsFinite
        IsInf IsNan IsNegInf KLDivLoss L2Loss L2Normalize LayerNorm Ldexp Lerp Less LessEqual
        LinSpace Log Log10 Log1p Log2 LogSoftmax LogicalAnd LogicalNot LogicalOr LogicalXor Logit
        MaskedFill MaskedSelect MatMul Maximum Meshgrid Minimum Mish Mod Mul Ndtr Neg NonZero
        NotEqual OneHot Ones OnesLike PReLU Pad Partial Pow Print Range Rank ReLU ReLU6 RealDiv
        Reciprocal ReduceAll ReduceAny ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Reshape
        ReverseV2 Rint Roll Round Rsqrt ScalarSummary ScatterAdd ScatterNd ScatterUpdate SeLU Select
        Shape Sigmoid SigmoidCrossEntropyWithLogits Sign Sin Sinh Size Slice SmoothL1Loss Softmax
        SoftmaxCrossEntropyWithLogits Softplus Softsign Sort SparseSoftmaxCrossEntropyWithLogits
        Split Sqrt Square SquaredDifference Squeeze Stack StandardNormal StridedSlice Sub Tan Tanh
        TensorAdd TensorScatterAdd TensorScatterElements TensorScatterUpdate TensorSummary Tile TopK
        Transpose Tril Triu Trunc UniformReal Unstack Xlogy Zeros ZerosLike""",
    "primitives.collectives": """
        AllGather AllReduce AlltoAll Barrier Broadcast Reduce ReduceOp ReduceScatter _VirtualDataset""",
    "primitives.custom": """
        AiCPURegOp AkgGpuRegOp CpuRegOp Custom CustomOpBuilder CustomRegOp DataType PyFunc TBERegOp
        custom_info_register op_info_register prim_attr_register""",
    "primitives.gradient_hooks": "HookBackward InsertGradientOf",
    "primitives.scalars": """
        add_flags list_len make_list make_range make_tuple mixed_precision_cast scalar_add
        scalar_cast scalar_div scalar_eq scalar_floordiv scalar_ge scalar_gt scalar_le scalar_log
        scalar_lt scalar_max scalar_min scalar_mod scalar_mul scalar_ne scalar_pow scalar_sub
        scalar_to_array scalar_uadd scalar_usub tuple_getitem tuple_len tuple_reversed tuple_setitem
        tuple_to_array""",
    "primitives.table": """
        Adam AdamNoUpdateParam AdamWeightDecay AdaptiveAvgPool2D AdaptiveMaxPool2D Angle
        ApplyAdadelta ApplyAdamWithAmsgrad ApplyAdamWithAmsgradV2 ApplyFtrl ApplyMomentum AvgPool
        AvgPool3D BatchNorm BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0
        BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 BitwiseAnd BitwiseOr BitwiseXor
        BoundingBoxDecode BoundingBoxEncode CTCLoss Cbrt Cdist CheckValid Cholesky Complex
        ComplexAbs Conj Conv2D Conv2DBackpropInput Conv2DTranspose Conv3D Conv3DTranspose
        CropAndResize Cross CumProd DepthToSpace DiagPart Digamma Dropout2D Dropout3D DropoutDoMask
        DropoutGenMask DynamicGRUV2 DynamicRNN Einsum Eps EqualCount FFTWithSize FlashAttentionScore
        FloatStatus FusedCastAdamWeightDecay FusedSparseFtrl FusedWeightScaleApplyMomentum GatherV2
        Gcd Gelu GenerateEodMaskV2 IOU Igamma Igammac Imag IndexAdd InplaceAdd InplaceSub
        InplaceUpdate Inverse LRN Lcm Lgamma LpNorm MatrixDeterminant MatrixInverse MatrixSolve
        MatrixTriangularSolve MaxPool MaxPool3D MaxPoolWithArgmax MaxUnpool2D MaxUnpool3D MirrorPad
        Multinomial Mvlgamma NLLLoss NMSWithMask NPUAllocFloatStatus NPUClearFloatStatus
        NPUGetFloatStatus Pack Polar Polygamma PsROIPooling Pull Push ROIAlign RandomCategorical
        RandomChoiceWithMask RandomShuffle Randperm Real Renorm ResizeBilinear ResizeBilinearV2
        ResizeNearestNeighbor ResizeNearestNeighborV2 ReverseSequence STFT ScalarCast ScalarToArray
        ScalarToTensor ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdAdd ScatterNdDiv
        ScatterNdMax ScatterNdMin ScatterNdMul ScatterNdSub ScatterNdUpdate ScatterSub SpaceToDepth
        SparseApplyFtrl Svd TensorScatterDiv TensorScatterMax TensorScatterMin TensorScatterMul
        TensorScatterSub TensorShape TruncateDiv TruncateMod TupleToArray UniformInt Unique Unpack
        UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentSum Xdivy Zeta""",
    "reductions.scans": """
        cummax cummin cumprod cumsum diff linear_recurrence logcumsumexp trapz""",
    "reductions.sets": """
        bucketize isin searchsorted unique unique_consecutive unique_with_pad""",
    "reductions.statistics": """
        aminmax bincount corrcoef cov histc median nanmean nanmedian nanquantile nansum quantile
        std_mean var_mean""",
}
METHODS_LATER = """
        addbmm addcdiv addcmul addmv adjoint aminmax|keepdim=keepdims|keep_dims=keepdims|dim=axis
        angle approximate_equal|other=y baddbmm bincount bitwise_and bitwise_left_shift bitwise_not
        bitwise_or bitwise_right_shift bitwise_xor cholesky cholesky_inverse cholesky_solve conj cov
        cross cummax cummin cumprod deg2rad det diagflat diagonal_scatter diff digamma dsplit
        float_power|other=exponent frac gcd heaviside histc hsplit igamma igammac imag
        index_fill|dim=axis inplace_update inverse is_complex is_floating_point isposinf isreal lcm
        lgamma logaddexp logaddexp2 logcumsumexp logdet matrix_power
        median|keepdim=keepdims|keep_dims=keepdims|dim=axis moveaxis mvlgamma nan_to_num
        nanmean|keepdim=keepdims|keep_dims=keepdims|dim=axis
        nanmedian|keepdim=keepdims|keep_dims=keepdims|dim=axis
        nanquantile|keepdim=keepdims|keep_dims=keepdims|dim=axis
        nansum|keepdim=keepdims|keep_dims=keepdims|dim=axis
        norm|keepdims=keepdim|keep_dims=keepdim|axis=dim positive
        quantile|keepdim=keepdims|keep_dims=keepdims|dim=axis rad2deg real renorm rot90
        scatter_nd_add scatter|dim=axis select_scatter sgn signbit sinc slice_scatter slogdet svd
        tensor_scatter_sub tensor_split type_as unique_consecutive unique_with_pad
        unsorted_segment_max unsorted_segment_min unsorted_segment_sum vsplit xdivy"""
IN_PLACE_LATER = "index_fill|dim=axis"
