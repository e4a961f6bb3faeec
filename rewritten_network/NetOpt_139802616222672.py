import sys
import mindspore
from mindspore import nn
from mindspore.nn import Cell
from mindspore.ops import functional as F
#
#
sys.path.insert(0, '/tmp')
Net = getattr(sys.modules['__main__'], 'Net')
log = getattr(sys.modules['__main__'], 'log')

class NetOpt(Net, nn.Cell):

    def __init__(self, obj):
        nn.Cell.__init__(self)
        for key, value in obj.__dict__.items():
            setattr(self, key, value)

    def construct(s, x):
        str_var = str(x.dtype)
        tuple_var = ('in', str_var)
        log.append(tuple_var)
        conv_var = s.conv(x)
        x = s.p1(conv_var)
        bn_var = s.bn(x)
        x = s.p2(bn_var)
        relu_var = s.relu(x)
        flat_var = s.flat(relu_var)
        x = s.p3(flat_var)
        fc_var = s.fc(x)
        x = s.p4(fc_var)
        ln_var = s.ln(x)
        x = s.p5(ln_var)
        x = s.mine(x)
        sm_var = s.sm(x)
        p6_var = s.p6(sm_var)
        return p6_var
#