"""What layers and losses are asked in both packages: agreement.py says how a case is written."""

from __future__ import annotations

from typing import Any

Case = tuple[str, list[Any]]

CONVOLUTIONS: list[Case] = [
    ("nn.Conv1d(2, 3, 3, has_bias=True)", ["2 2 7"]),
    ("nn.Conv1d(2, 3, 3, 2, 'pad', 1, 2)", ["2 2 9"]),
    ("nn.Conv2d(2, 4, 3, 2, 'pad', (1, 0, 2, 1), group=2, has_bias=True)", ["2 2 6 7"]),
    ("nn.Conv2d(2, 3, (2, 3), 1, 'valid', dilation=(2, 1))", ["1 2 5 6"]),
    ("nn.Conv2d(2, 3, 4, 3)", ["1 2 8 7"]),
    ("nn.Conv3d(2, 3, 3, has_bias=True)", ["1 2 4 5 4"]),
    ("nn.Conv3d(2, 3, (2, 3, 2), (1, 2, 2), 'pad', (1, 0, 1, 1, 0, 1))", ["2 2 4 5 4"]),
    ("nn.Conv3d(2, 3, 2, 2, 'valid')", ["1 2 5 4 5"]),
    ("nn.Conv1dTranspose(2, 3, 3, 2, has_bias=True)", ["2 2 5"]),
    ("nn.Conv1dTranspose(2, 3, 4, 2, 'pad', 1)", ["2 2 5"]),
    ("nn.Conv1dTranspose(2, 3, 3, 2, 'valid')", ["2 2 5"]),
    ("nn.Conv2dTranspose(2, 4, 3, 2, has_bias=True)", ["2 2 4 5"]),
    ("nn.Conv2dTranspose(2, 3, 2, 3)", ["1 2 4 3"]),
    ("nn.Conv2dTranspose(2, 3, 2, 3, 'valid')", ["1 2 4 3"]),
    ("nn.Conv2dTranspose(2, 3, (4, 3), 2, 'valid')", ["1 2 4 3"]),
    ("nn.Conv2dTranspose(2, 3, 4, 2, 'pad', 1)", ["2 2 4 5"]),
    ("nn.Conv2dTranspose(4, 6, 3, 2, 'pad', (1, 0, 1, 1), group=2)", ["1 4 4 3"]),
    ("nn.Conv2dTranspose(2, 3, 3, 2, 'pad', 1, 1, has_bias=True)", ["1 2 4 3"]),
    ("nn.Conv2dTranspose(2, 3, 3, 1, 'pad', 0, 0, 2)", ["1 2 4 3"]),
    ("nn.Conv2dTranspose(2, 3, 3, dilation=2)", ["1 2 4 5"]),
    ("nn.Conv3dTranspose(2, 3, 3, 2, has_bias=True)", ["1 2 3 2 3"]),
    ("nn.Conv3dTranspose(2, 3, 2, 2, 'pad', 0, output_padding=1)", ["1 2 3 2 3"]),
    ("nn.Conv3dTranspose(2, 3, (2, 3, 2), 2, 'valid')", ["1 2 3 2 3"]),
]

POOLINGS: list[Case] = [
    ("nn.MaxPool1d(3, 2)", ["2 3 8"]),
    ("nn.MaxPool2d(3, 2, 'same')", ["2 3 7 8"]),
    ("nn.MaxPool2d(3, 2, 'pad', 1)", ["2 3 7 8"]),
    ("nn.MaxPool2d(2, 2, 'pad', 0, return_indices=True)", ["2 3 6 8"]),
    ("nn.MaxPool2d(2, 3, 'pad', 0, ceil_mode=True)", ["2 3 6 8"]),
    ("nn.MaxPool3d(2, 2)", ["2 3 4 5 6"]),
    ("nn.MaxPool3d(3, 2, 'same')", ["1 2 4 5 6"]),
    ("nn.MaxPool3d((1, 2, 3), 1, 'pad', (0, 1, 1))", ["1 2 4 5 6"]),
    ("nn.AvgPool1d(3, 2)", ["2 3 8"]),
    ("nn.AvgPool2d(3, 2, 'same')", ["2 3 7 8"]),
    ("nn.AvgPool2d(3, 2, 'pad', 1)", ["2 3 7 8"]),
    ("nn.AvgPool2d(3, 2, 'pad', 1, count_include_pad=False)", ["2 3 7 8"]),
    ("nn.AvgPool3d(2, 2)", ["2 3 4 5 6"]),
    ("nn.AvgPool3d(3, 2, 'same')", ["1 2 4 5 6"]),
    ("nn.AvgPool3d(2, 2, 'pad', 1, count_include_pad=False)", ["1 2 4 5 6"]),
    ("nn.AdaptiveAvgPool1d(3)", ["2 3 6"]),
    ("nn.AdaptiveAvgPool2d((3, 2))", ["2 3 7 8"]),
    ("nn.AdaptiveAvgPool2d((None, 1))", ["3 4 5"]),
    ("nn.AdaptiveAvgPool3d((2, 3, None))", ["1 2 5 4 3"]),
    ("nn.AdaptiveMaxPool1d(3)", ["2 3 6"]),
    ("nn.AdaptiveMaxPool2d((3, 2))", ["2 3 7 8"]),
    ("nn.AdaptiveMaxPool2d((3, None), True)", ["2 3 7 8"]),
    ("nn.AdaptiveMaxPool3d((2, 3, 1), True)", ["1 2 5 4 3"]),
    ("nn.LPPool1d(2, 3, 2)", ["unit: 2 3 8"]),
    ("nn.LPPool2d(3, 2)", ["unit: 2 3 6 8"]),
    (
        "lambda x: nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, 2, 'pad', return_indices=True)(x))",
        ["2 3 4 6"],
    ),
]

PADDINGS: list[Case] = [
    ("nn.Pad(((1, 2), (0, 1)))", ["3 4"]),
    ("nn.Pad(((0, 0), (1, 2)), 'REFLECT')", ["3 4"]),
    ("nn.Pad(((2, 3), (1, 2)), 'SYMMETRIC')", ["3 4"]),
    ("nn.ConstantPad1d((1, 2), 0.5)", ["2 3 4"]),
    ("nn.ConstantPad2d((1, -1, 2, 0), -1.5)", ["2 3 4 4"]),
    ("nn.ConstantPad3d(1, 2)", ["2 3 2 3 2"]),
    ("nn.ZeroPad2d((1, 2, 0, 1))", ["2 3 4 4"]),
    ("nn.ReflectionPad1d((2, 1))", ["2 3 4"]),
    ("nn.ReflectionPad2d((1, 2, 2, 0))", ["2 3 4 4"]),
    ("nn.ReflectionPad3d(1)", ["1 2 3 2 4"]),
    ("nn.ReplicationPad1d(2)", ["2 3 4"]),
    ("nn.ReplicationPad2d((1, 2, 0, 3))", ["2 3 4 4"]),
    ("nn.ReplicationPad3d((1, 0, 2, 1, 1, 1))", ["1 2 3 2 4"]),
    ("nn.PixelShuffle(2)", ["2 8 3 4"]),
    ("nn.PixelUnshuffle(2)", ["2 2 4 6"]),
    ("nn.ChannelShuffle(3)", ["2 6 2 3"]),
]

RESIZES: list[Case] = [
    ("nn.Upsample(6)", ["2 3 4"]),
    ("nn.Upsample((7, 3))", ["2 3 4 5"]),
    ("nn.Upsample((3, 8, 5))", ["1 2 3 4 3"]),
    ("nn.Upsample(scale_factor=2.0, recompute_scale_factor=True)", ["2 3 4 5"]),
    ("nn.Upsample(scale_factor=(2.0, 1.5, 1.3))", ["1 2 3 4 5"]),
    ("nn.Upsample((7, 3), mode='nearest-exact')", ["2 3 4 5"]),
    ("nn.Upsample(9, mode='linear')", ["2 3 4"]),
    ("nn.Upsample(9, mode='linear', align_corners=True)", ["2 3 4"]),
    ("nn.Upsample((7, 3), mode='bilinear')", ["2 3 4 5"]),
    ("nn.Upsample((8, 10), mode='bilinear', align_corners=True)", ["2 3 4 5"]),
    ("nn.Upsample((7, 9), mode='bicubic')", ["2 3 4 5"]),
    ("nn.Upsample((7, 9), mode='bicubic', align_corners=True)", ["2 3 4 5"]),
    ("nn.Upsample((5, 6, 7), mode='trilinear')", ["1 2 3 4 3"]),
    ("nn.Upsample((5, 6, 7), mode='trilinear', align_corners=True)", ["1 2 3 4 3"]),
    ("nn.Upsample(scale_factor=(1.5, 2.0, 1.3), mode='trilinear')", ["1 2 3 4 5"]),
    ("nn.Upsample((3, 2), mode='area')", ["2 3 7 5"]),
]

RECURRENT: list[Case] = [
    ("nn.RNN(3, 4)", ["5 2 3"]),
    ("nn.RNN(3, 4, 2, False, True, 0.0, True, nonlinearity='relu')", ["2 5 3", "4 2 4"]),
    ("nn.RNN(3, 4, bidirectional=True)", ["5 3 3", "2 3 4", "lengths 5: 3"]),
    ("nn.LSTM(3, 4)", ["5 2 3"]),
    ("nn.LSTM(3, 4, 2, True, True, 0.0, True)", ["2 5 3", ("4 2 4", "4 2 4")]),
    ("nn.LSTM(3, 4, 2, False)", ["5 3 3", ("2 3 4", "2 3 4"), "lengths 5: 3"]),
    ("nn.LSTM(3, 4, bidirectional=True)", ["5 3 3", ("2 3 4", "2 3 4"), "lengths 5: 3"]),
    ("nn.GRU(3, 4)", ["5 2 3", "1 2 4"]),
    ("nn.GRU(3, 4, 2, True, True, 0.0, True)", ["2 5 3", "4 2 4", "lengths 5: 2"]),
    ("nn.RNNCell(3, 4)", ["2 3", "2 4"]),
    ("nn.RNNCell(3, 4, False, 'relu')", ["2 3", "2 4"]),
    ("nn.LSTMCell(3, 4)", ["2 3", ("2 4", "2 4")]),
    ("nn.GRUCell(3, 4)", ["2 3", "2 4"]),
]

ATTENTION: list[Case] = [
    ("nn.MultiheadAttention(6, 2)", ["3 2 6", "4 2 6", "4 2 6"]),
    ("nn.MultiheadAttention(6, 3, batch_first=True)", ["2 3 6", "2 4 6", "2 4 6", "mask: 2 4"]),
    ("nn.MultiheadAttention(6, 2, has_bias=False, kdim=5, vdim=3)", ["3 2 6", "4 2 5", "4 2 3"]),
    (
        "nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True)",
        ["3 2 6", "4 2 6", "4 2 6", None, None, "3 4"],
    ),
    ("nn.MultiheadAttention(6, 2)", ["3 6", "4 6", "4 6"]),
    ("nn.TransformerEncoderLayer(6, 2, 8, 0.0)", ["3 2 6"]),
    ("nn.TransformerEncoderLayer(6, 2, 8, 0.0, 'gelu', norm_first=True)", ["3 2 6", "3 3"]),
    ("nn.TransformerDecoderLayer(6, 2, 8, 0.0, batch_first=True)", ["2 3 6", "2 4 6"]),
    ("nn.TransformerDecoderLayer(6, 2, 8, 0.0, norm_first=True)", ["3 2 6", "4 2 6", "3 3"]),
    (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0), 2, nn.LayerNorm((6,)))",
        ["3 2 6"],
    ),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, 0.0), 2)", ["3 2 6", "4 2 6"]),
    ("nn.Transformer(6, 2, 1, 2, 8, 0.0)", ["3 2 6", "4 2 6"]),
]

NORMALIZATIONS: list[Case] = [
    ("nn.BatchNorm1d(3)", ["4 3"]),
    ("nn.BatchNorm2d(3).set_train()", ["2 3 4 5"]),
    ("nn.SyncBatchNorm(3)", ["2 3 4 5"]),
    ("nn.LayerNorm((3, 4), 1, 1)", ["2 3 4"]),
    ("nn.GroupNorm(2, 4)", ["2 4 3 3"]),
]

OTHERS: list[Case] = [
    ("nn.ClipByNorm()", ["3 4", "unit: 1"]),
    ("nn.MatMul(True, False)", ["2 4 3", "4 5"]),
    ("nn.MatMul()", ["4", "2 4 3"]),
    ("nn.Moments((0, 2))", ["2 3 4"]),
    ("nn.Norm(1, True)", ["3 4"]),
    ("nn.Norm()", ["3 4"]),
    ("nn.OneHot(0, 5, 2.0, -1.0)", ["int 5: 3 2"]),
    ("nn.Range(1, 8, 2)", []),
    ("nn.Range(0.5, 2.0, 0.25)", []),
    ("nn.ReduceLogSumExp(1, True)", ["3 4"]),
    ("nn.Tril()", ["3 4"]),
    ("nn.Triu()", ["3 4"]),
    ("nn.Unflatten(1, (2, 3))", ["2 6 2"]),
    ("nn.EmbeddingLookup(5, 4)", ["int 7: 3 2"]),
    ("nn.Linear(3, 4)", ["2 3"]),
    ("nn.BiDense(3, 4, 2)", ["2 5 3", "2 5 4"]),
    ("nn.TimeDistributed(nn.Dense(3, 4), 1)", ["2 5 3"]),
    ("nn.TimeDistributed(nn.Dense(3, 4), 1, 0)", ["2 5 3"]),
    ("nn.Conv2dBnAct(2, 3, 3, has_bn=True, activation='relu')", ["2 2 4 4"]),
    ("nn.DenseBnAct(3, 4, has_bn=True, activation='leakyrelu')", ["2 3"]),
    ("nn.CentralCrop(0.5)", ["2 3 7 8"]),
    ("nn.ImageGradients()", ["2 3 4 5"]),
]

LOSSES: list[Case] = [
    ("nn.CosineEmbeddingLoss(0.2)", ["4 3", "4 3", "sign: 4"]),
    ("nn.CosineEmbeddingLoss(0.1, 'none')", ["4 3", "4 3", "sign: 4"]),
    ("nn.MarginRankingLoss(0.3)", ["5", "5", "sign: 5"]),
    ("nn.MarginRankingLoss(0.0, 'none')", ["2 5", "2 5", "sign: 2 5"]),
    ("nn.TripletMarginWithDistanceLoss(margin=0.5)", ["4 3", "4 3", "4 3"]),
    ("nn.HingeEmbeddingLoss()", ["4 3", "sign: 4 3"]),
    ("nn.HingeEmbeddingLoss(0.5, 'none')", ["4 3", "sign: 4 3"]),
    ("nn.MultiLabelSoftMarginLoss()", ["4 3", "bit: 4 3"]),
    ("nn.MultiLabelSoftMarginLoss(reduction='none')", ["4 3", "bit: 4 3"]),
    ("nn.GaussianNLLLoss()", ["4 3", "4 3", "unit: 4 1"]),
    ("nn.GaussianNLLLoss(full=True, eps=0.3, reduction='sum')", ["4 3", "4 3", "unit: 4 3"]),
    ("nn.PoissonNLLLoss()", ["4 3", "unit: 4 3"]),
    ("nn.PoissonNLLLoss(False, True, reduction='none')", ["unit: 4 3", "int 6: 4 3"]),
    # Of log_softmax, since MindSpore gives the derivative by what log_softmax got.
    (
        "lambda x, *rest: nn.CTCLoss()(ops.log_softmax(x, -1), *rest)",
        ["6 3 5", "classes 5: 3 2", "int32 6 5 6: 3", "int32 2 1 2: 3"],
    ),
    (
        "lambda x, *rest: nn.CTCLoss(2, 'none', True)(ops.log_softmax(x, -1), *rest)",
        ["5 4 4", "int32 0 1 0 3 3 1 0 0 0 1 3 1: 4 3", "int32 5 4 3 3: 4", "int32 3 1 2 3: 4"],
    ),
    (
        "lambda x, *rest: nn.CTCLoss(reduction='sum')(ops.log_softmax(x, -1), *rest)",
        ["6 5", "classes 5: 2", "int32 6: 1", "int32 2: 1"],
    ),
    ("nn.DiceLoss()", ["unit: 3 4", "bit: 3 4"]),
    ("nn.MultiClassDiceLoss()", ["3 4 2", "bit: 3 4 2"]),
    ("nn.MultiClassDiceLoss(ignore_indiex=1, activation='sigmoid')", ["3 4", "bit: 3 4"]),
    ("nn.FocalLoss()", ["3 4", "int 4: 3 1"]),
    ("nn.FocalLoss(gamma=1.5, reduction='none')", ["3 4 2", "shares: 3 4 2"]),
    ("nn.FocalLoss(Tensor(np.array([0.5, 1.0, 2.0], np.float32)))", ["4 3 5", "int 3: 4 1 5"]),
    ("nn.CrossEntropyLoss(label_smoothing=0.1)", ["4 3", "int 3: 4"]),
    ("nn.BCEWithLogitsLoss()", ["4 3", "bit: 4 3"]),
    ("nn.KLDivLoss('batchmean')", ["4 3", "shares: 4 3"]),
    ("nn.HuberLoss()", ["4 3", "4 3"]),
    ("nn.SmoothL1Loss(0.5)", ["4 3", "4 3"]),
    ("nn.RMSELoss()", ["4 3", "4 3"]),
]

#: Whose gradients MindSpore gives in another form: as the rows that were looked up.
ONLY_VALUES = {"nn.EmbeddingLookup(5, 4)"}

#: Derivatives that MindSpore does not have and says are zero.
ZERO_THERE = {"nn.KLDivLoss('batchmean')": "by input 1"}

#: Where MindSpore itself is less exact, how far from it: it rounds positions to 1/1024 of a pixel.
TOLERANCES = {"nn.Upsample((7, 9), mode='bicubic')": 2e-2}

LAYERS: list[Case] = [
    *CONVOLUTIONS,
    *POOLINGS,
    *PADDINGS,
    *RESIZES,
    *RECURRENT,
    *ATTENTION,
    *NORMALIZATIONS,
    *OTHERS,
    *LOSSES,
]
