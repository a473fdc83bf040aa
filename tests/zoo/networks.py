# SPDX-License-Identifier: MIT OR Apache-2.0
"""The networks that torch_refs.py compares the zoo with.

Out: cases(), a Case by name, or why there is none. Where a library has the network it is the library's, with a
configuration of fewer and narrower layers; U-Net and YOLOX, which are no packages, and the classifiers are written
here from their papers and the names of their public weights, with PyTorch's own modules."""
import collections

import torch
from torch import nn
from torch.nn import functional as F

import recorded
from torch_refs import Case

# ---------------------------------------------------------------- networks


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.max_pool2d(F.relu(self.conv1(x)), 2))), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class LstmClassifier(nn.Module):
    def __init__(self, layers=1):
        super().__init__()
        self.embedding = nn.Embedding(10000, 128)
        self.lstm = nn.LSTM(128, 256, layers, batch_first=True)
        self.fc = nn.Linear(256, 2)

    def forward(self, tokens):
        return self.fc(self.lstm(self.embedding(tokens))[1][0][-1])


class GruClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(16, 64, 2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(128, 6)

    def forward(self, x):
        h = self.gru(x)[1]
        return self.fc(torch.cat((h[-2], h[-1]), 1))


class DoubleConv(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        parts = []
        for channels in (before, after):
            parts += [nn.Conv2d(channels, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.double_conv = nn.Sequential(*parts)

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(before, after))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.up = nn.ConvTranspose2d(before, before // 2, 2, stride=2)
        self.conv = DoubleConv(before, after)

    def forward(self, x, across):
        return self.conv(torch.cat([across, self.up(x)], 1))


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inc = DoubleConv(3, width)
        for i in range(1, 5):
            setattr(self, f"down{i}", Down(width << i - 1, width << i))
            setattr(self, f"up{i}", Up(width << 5 - i, width << 4 - i))
        self.outc = nn.ModuleDict({"conv": nn.Conv2d(width, 2, 1)})

    def forward(self, x):
        levels = [self.inc(x)]
        for down in (self.down1, self.down2, self.down3, self.down4):
            levels.append(down(levels[-1]))
        x = levels.pop()
        for up in (self.up1, self.up2, self.up3, self.up4):
            x = up(x, levels.pop())
        return self.outc["conv"](x)


class Unit(nn.Module):
    """YOLOX's convolution with batch norm and SiLU; deep: depth-wise, then point-wise."""

    def __init__(self, before, after, kernel=1, stride=1, groups=1, deep=False):
        super().__init__()
        self.deep = deep
        if deep:
            self.dconv = Unit(before, before, kernel, stride, before)
            self.pconv = Unit(before, after)
        else:
            self.conv = nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False)
            self.bn = nn.BatchNorm2d(after, eps=1e-3)

    def forward(self, x):
        return self.pconv(self.dconv(x)) if self.deep else F.silu(self.bn(self.conv(x)))


class Bottleneck(nn.Module):
    def __init__(self, channels, added):
        super().__init__()
        self.conv1, self.conv2, self.added = Unit(channels, channels), Unit(channels, channels, 3, deep=True), added

    def forward(self, x):
        y = self.conv2(self.conv1(x))
        return x + y if self.added else y


class Csp(nn.Module):
    def __init__(self, before, after, blocks, added):
        super().__init__()
        half = after // 2
        self.conv1, self.conv2, self.conv3 = Unit(before, half), Unit(before, half), Unit(after, after)
        self.m = nn.Sequential(*[Bottleneck(half, added) for _ in range(blocks)])

    def forward(self, x):
        return self.conv3(torch.cat((self.m(self.conv1(x)), self.conv2(x)), 1))


class Pyramid(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.conv2 = Unit(channels, channels // 2), Unit(2 * channels, channels)

    def forward(self, x):
        x = self.conv1(x)
        return self.conv2(torch.cat([x] + [F.max_pool2d(x, k, 1, k // 2) for k in (5, 9, 13)], 1))


class Darknet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.stem = nn.ModuleDict({"conv": Unit(12, w, 3)})
        for i, blocks in ((1, 1), (2, 3), (3, 3)):
            setattr(self, f"dark{i + 1}", nn.Sequential(Unit(w << i - 1, w << i, 3, 2, deep=True),
                                                        Csp(w << i, w << i, blocks, True)))
        self.dark5 = nn.Sequential(Unit(8 * w, 16 * w, 3, 2, deep=True), Pyramid(16 * w), Csp(16 * w, 16 * w, 1, False))

    def forward(self, x):
        quarters = (x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2])
        level = [self.stem["conv"](torch.cat(quarters, 1))]
        for dark in (self.dark2, self.dark3, self.dark4, self.dark5):
            level.append(dark(level[-1]))
        return level[2:]


class Pafpn(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.backbone = Darknet(w)
        self.lateral_conv0, self.C3_p4 = Unit(16 * w, 8 * w), Csp(16 * w, 8 * w, 1, False)
        self.reduce_conv1, self.C3_p3 = Unit(8 * w, 4 * w), Csp(8 * w, 4 * w, 1, False)
        self.bu_conv2, self.C3_n3 = Unit(4 * w, 4 * w, 3, 2, deep=True), Csp(8 * w, 8 * w, 1, False)
        self.bu_conv1, self.C3_n4 = Unit(8 * w, 8 * w, 3, 2, deep=True), Csp(16 * w, 16 * w, 1, False)

    def forward(self, x):
        fine, middle, coarse = self.backbone(x)
        top = self.lateral_conv0(coarse)
        middle = self.C3_p4(torch.cat([F.interpolate(top, scale_factor=2), middle], 1))
        narrow = self.reduce_conv1(middle)
        fine = self.C3_p3(torch.cat([F.interpolate(narrow, scale_factor=2), fine], 1))
        middle = self.C3_n3(torch.cat([self.bu_conv2(fine), narrow], 1))
        return fine, middle, self.C3_n4(torch.cat([self.bu_conv1(middle), top], 1))


class Head(nn.Module):
    def __init__(self, w, classes):
        super().__init__()

        def each(make):
            return nn.ModuleList([make(i) for i in range(3)])

        def pair(_):
            return nn.Sequential(Unit(4 * w, 4 * w, 3, deep=True), Unit(4 * w, 4 * w, 3, deep=True))
        self.cls_convs, self.reg_convs = each(pair), each(pair)
        self.cls_preds, self.reg_preds, self.obj_preds = [
            each(lambda _, n=n: nn.Conv2d(4 * w, n, 1)) for n in (classes, 4, 1)]
        self.stems = each(lambda i: Unit(4 * w << i, 4 * w))

    def forward(self, levels):
        found = []
        for i, x in enumerate(levels):
            x = self.stems[i](x)
            box = self.reg_convs[i](x)
            found.append(torch.cat([self.reg_preds[i](box), self.obj_preds[i](box).sigmoid(),
                                    self.cls_preds[i](self.cls_convs[i](x)).sigmoid()], 1).flatten(2))
        return torch.cat(found, 2).transpose(1, 2)


class Yolox(nn.Module):
    def __init__(self, w=16, classes=80):
        super().__init__()
        self.backbone, self.head = Pafpn(w), Head(w, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


# ---------------------------------------------------------------- what they are given


def filled(name, shape):
    return torch.frombuffer(bytearray(recorded.given_reals(name, shape)), dtype=torch.float32).reshape(shape)


def real(name, *shape):
    return lambda g: {name: filled(name, shape)}


def words(vocabulary, batch, length, pad=None):
    """Tokens, and a mask of which the last are behind the end; there they are the padding's number."""
    def inputs(g):
        ids, mask = torch.randint(3, vocabulary, (batch, length), generator=g), torch.ones(batch, length).long()
        mask[-1, 2 * length // 3:] = 0
        return {"input_ids": ids if pad is None else ids.masked_fill(mask == 0, pad), "attention_mask": mask}
    return inputs


def tokens(name, vocabulary, batch, length):
    return lambda g: {name: torch.randint(0, vocabulary, (batch, length), generator=g)}


def encoded(m, x):
    """Hidden states, and what a pooler makes of the first."""
    out = m(**x)
    return [out.last_hidden_state] + ([out.pooler_output] if getattr(out, "pooler_output", None) is not None else [])


def logits(m, x):
    return m(**x).logits


def speech(m, x):
    return m(input_features=x["mel"], decoder_input_ids=x["tokens"]).logits


# ---------------------------------------------------------------- the cases


def own():
    image = real("image", 2, 3, 64, 64)
    return {
        "lenet": Case(LeNet, "lenet", "", real("image", 3, 1, 28, 28), ["logits"]),
        "unet": Case(lambda: UNet(16), "unet", "width=16 size=64", image, ["mask"]),
        "yolox_nano": Case(Yolox, "yolox_nano", "size=160", real("images", 1, 3, 160, 160), ["output"]),
        "lstm_classifier": Case(LstmClassifier, "lstm_classifier", "", tokens("tokens", 10000, 3, 21), ["logits"]),
        "lstm_classifier of two layers": Case(lambda: LstmClassifier(2), "lstm_classifier", "layers=2",
                                              tokens("tokens", 10000, 3, 21), ["logits"]),
        "gru_classifier": Case(GruClassifier, "gru_classifier", "", real("signal", 3, 33, 16), ["logits"]),
    }


def vision():
    from torchvision import models as tv, ops
    image = real("image", 1, 3, 64, 64)

    def of(make, **more):
        return lambda: make(weights=None, **more)
    return {
        "mlp": Case(lambda: ops.MLP(784, [128, 128, 10]), "mlp", "", real("x", 3, 784), ["logits"]),
        "resnet 18": Case(of(tv.resnet18), "resnet", "depth=18 size=64", image, ["logits"]),
        "densenet 121": Case(of(tv.densenet121), "densenet", "depth=121 size=64", image, ["logits"]),
        "squeezenet": Case(of(tv.squeezenet1_1), "squeezenet", "size=64", image, ["logits"]),
        "mobilenet_v2": Case(of(tv.mobilenet_v2), "mobilenet_v2", "size=64", image, ["logits"]),
        "efficientnet_b0": Case(of(tv.efficientnet_b0), "efficientnet_b0", "size=64", image, ["logits"]),
        "vit_b_16": Case(lambda: tv.VisionTransformer(64, 16, 3, 4, 96, 384), "vit_b_16",
                         "size=64 width=96 heads=4 layers=3", image, ["logits"]),
    }


def hugging():
    import transformers as hf
    hf.logging.set_verbosity_error()
    hf.logging.disable_progress_bar()
    small = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4)
    bert = "width=64 layers=3 heads=4 vocabulary=311 inner=256"
    gqa = dict(small, num_key_value_heads=2, intermediate_size=160, vocab_size=311, max_position_embeddings=64)
    llama = "width=64 layers=3 heads=4 kv_heads=2 inner=160 vocabulary=311"
    hidden, both = ["last_hidden_state"], ["last_hidden_state", "pooler_output"]
    t5 = dict(d_model=64, d_kv=16, d_ff=160, num_layers=3, num_heads=4, vocab_size=311)
    sets = "width=64 heads=4 layers=3 size=16 inner=160 vocabulary=311"
    given = words(311, 2, 41)

    def speech_inputs(g):
        return {"mel": filled("mel", (1, 20, 60)), "tokens": torch.randint(0, 311, (1, 13), generator=g)}
    whisper = hf.WhisperConfig(
        vocab_size=311, num_mel_bins=20, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, d_model=64, encoder_ffn_dim=256, decoder_ffn_dim=256, max_source_positions=30,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    return {
        "bert": Case(lambda: hf.BertModel(hf.BertConfig(**small, intermediate_size=256, vocab_size=311)), "bert", bert,
                     given, both, encoded),
        "roberta": Case(
            lambda: hf.RobertaModel(hf.RobertaConfig(**small, intermediate_size=256, vocab_size=311, type_vocab_size=1,
                                                     max_position_embeddings=66, layer_norm_eps=1e-5)),
            "bert", bert + " positions=66 types=1 pad=1 eps=1e-5", words(311, 2, 41, 1), both, encoded),
        "distilbert": Case(
            lambda: hf.DistilBertModel(hf.DistilBertConfig(dim=64, n_layers=3, n_heads=4, hidden_dim=256,
                                                           vocab_size=311)),
            "distilbert", "width=64 layers=3 heads=4 vocabulary=311", given, hidden, encoded),
        "albert": Case(
            lambda: hf.AlbertModel(hf.AlbertConfig(**small, intermediate_size=256, vocab_size=311, embedding_size=24)),
            "albert", bert + " embedding=24", given, both, encoded),
        "t5_encoder": Case(lambda: hf.T5EncoderModel(hf.T5Config(**t5)), "t5_encoder", sets, words(311, 2, 150), hidden,
                           encoded),
        "t5_encoder, gated": Case(lambda: hf.T5EncoderModel(hf.T5Config(**t5, feed_forward_proj="gated-gelu")),
                                  "t5_encoder", sets + " gated=1", given, hidden, encoded),
        "gpt2": Case(
            lambda: hf.GPT2LMHeadModel(hf.GPT2Config(n_embd=64, n_layer=3, n_head=4, vocab_size=311, n_positions=64,
                                                     bos_token_id=0, eos_token_id=0)),
            "gpt2", "width=64 layers=3 heads=4 vocabulary=311 positions=64", tokens("input_ids", 311, 2, 41),
            ["logits"], logits, [r"^transformer\.(.*)=\1"]),
        "llama": Case(lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**gqa, rms_norm_eps=1e-5)), "llama", llama,
                      tokens("input_ids", 311, 2, 41), ["logits"], logits),
        "llama, qwen2": Case(
            lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**gqa, rms_norm_eps=1e-6, rope_theta=1e6,
                                                       tie_word_embeddings=True)),
            "llama", llama + " bias=1 base=1e6 eps=1e-6 tied=1", tokens("input_ids", 311, 2, 41), ["logits"], logits),
        "whisper": Case(lambda: hf.WhisperForConditionalGeneration(whisper), "whisper",
                        "width=64 heads=4 layers=2 mels=20 frames=60 vocabulary=311", speech_inputs, ["logits"],
                        speech),
    }


def cases():
    found = collections.OrderedDict()
    for group, library in ((own, "torch"), (vision, "torchvision"), (hugging, "transformers")):
        try:
            found.update(group())
        except ImportError:
            found[library] = f"{library} is not here"
    return found
