#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# burncc fit, predict and evaluate, over data that is made here: tables, folders of images and of sounds, texts, IDX.
source "$(dirname "$0")/tap.sh"
models=$here/../../models
export BURNCC_CFLAGS=-O0
python3 - <<'END'
import math, os, random, struct, wave
draw = random.Random(1)
with open("animals.csv", "w") as table:
    print("name,size,colour,legs,kind", file=table)
    for i in range(120):
        kind = i % 3
        size = round(draw.gauss((1, 40, 300)[kind], (0.3, 8, 40)[kind]), 3)
        print(f"n{i},{size},{draw.choice(('red', 'grey'))},{(6, 4, 2)[kind]},{('ant', 'dog', 'ox')[kind]}", file=table)
with open("line.csv", "w") as table:
    print("x,y,z", file=table)
    for i in range(200):
        x, y = draw.uniform(-1, 1), draw.uniform(-1, 1)
        print(f"{x:.4f},{y:.4f},{3 * x - 2 * y + 1:.4f}", file=table)
with open("two.csv", "w") as table:
    print("x,y,side", file=table)
    for i in range(200):
        x, y = draw.uniform(-1, 1), draw.uniform(-1, 1)
        print(f"{x:.4f},{y:.4f},{'above' if y > x else 'below'}", file=table)
def bars(across):
    at = draw.randrange(2, 10)
    return bytes(draw.randrange(40) + 200 * ((k // 12 if across else k % 12) == at) for k in range(144))
for kind in ("across", "down"):
    os.makedirs(f"bars/{kind}")
    for i in range(20):
        open(f"bars/{kind}/{i}.pgm", "wb").write(b"P5 12 12 255\n" + bars(kind == "across"))
for kind, pitch in (("high", 1200), ("low", 300)):
    os.makedirs(f"tones/{kind}")
    for i in range(10):
        with wave.open(f"tones/{kind}/{i}.wav", "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(8000)
            turn = 2 * math.pi * pitch * draw.uniform(0.9, 1.1) / 8000
            sound.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(turn * k))) for k in range(800)))
open("abc.txt", "w").write("abcd" * 200)
os.makedirs("idx")
for part, n in (("train", 60), ("t10k", 20)):
    labels = [i % 2 for i in range(n)]
    open(f"idx/{part}-images-idx3-ubyte", "wb").write(
        struct.pack(">HBBIII", 0, 8, 3, n, 12, 12) + b"".join(bars(k) for k in labels))
    open(f"idx/{part}-labels-idx1-ubyte", "wb").write(struct.pack(">HBBI", 0, 8, 1, n) + bytes(labels))
END
cat >table.c <<'END'
#include <burncc/model.h>
MODEL(table)
{
    Tensor x = input("features", F32, symbol("batch"), config("features", 4));
    x = relu(linear(x, "fc1", 16));
    output("out", linear(x, "fc2", config("classes", 3)));
}
END
cat >image.c <<'END'
#include <burncc/model.h>
MODEL(image)
{
    Tensor x = input("image", F32, symbol("batch"), 1, 12, 12);
    x = max_pool2d(relu(conv2d(x, "conv", 4, 3)), 2);
    output("logits", linear(flatten(x, 1), "fc", config("classes", 2)));
}
END
cat >sound.c <<'END'
#include <burncc/model.h>
MODEL(sound)
{
    Tensor x = input("mel", F32, symbol("batch"), 8, 9);
    output("logits", linear(flatten(x, 1), "fc", 2));
}
END
cat >text.c <<'END'
#include <burncc/model.h>
MODEL(text)
{
    Tensor x = input("tokens", I64, symbol("batch"), symbol("words"));
    output("logits", linear(embedding(x, "embed", 4, 16), "fc", 4));
}
END
number='[0-9.]+(e[+-][0-9]+)?'
fit() { status "$1" "fit $2" "$burncc" fit $2 ${3:---epochs 12 --lr 0.02} --quiet; }
column() { # the last line's figure NAME, from LEAST to MOST
    awk -v name="$1=" -v least="$2" -v most="$3" '{ for (i = 1; i <= NF; i++) if (index($i, name) == 1) {
        x = substr($i, length(name) + 1); found = x >= least && x <= most } } END { exit !found }' out
    result $? "$1 is from $2 to $3"
}

# tables
fit 0 "table.c --data csv:animals.csv,ignore=name,scale --artifacts animals"
says "^epochs=12 best_epoch=[0-9]+ valid_loss=$number valid_accuracy=$number seconds=$number\$"
column valid_accuracy 0.9 1
for file in model.onnx model.safetensors model.c model.h model.json; do
    [ -s animals/$file ]
    result $? "there is $file"
done
for file in train/epoch-12/loss.log valid/epoch-1/accuracy.log history.csv experiment.log report.html; do
    [ -s animals/$file ]
    result $? "there is $file"
done
printf 'legs,colour,size\n6,grey,1.1\n2,red,310\n' >new.csv
status 0 "classes by name" "$burncc" predict animals/model.onnx new.csv --quiet
says "^new.csv:1	ant	[01]\.[0-9]{4}\$"
says "^new.csv:2	ox	[01]\.[0-9]{4}\$"
status 0 "as JSON" "$burncc" predict animals/model.onnx new.csv --json
python3 -c 'import json
rows = [json.loads(line) for line in open("out")]
assert [row["class"] for row in rows] == ["ant", "ox"] and abs(sum(rows[0]["probabilities"]) - 1) < 1e-4
assert rows[0]["probability"] == max(rows[0]["probabilities"])'
result $? "it is JSON"
status 0 "evaluate" "$burncc" evaluate animals/model.onnx animals.csv --metrics "accuracy,f_beta(beta=2)"
says "^items=120 loss=$number accuracy=$number f_beta\(beta=2\)=$number seconds=$number\$"
column accuracy 0.9 1
loss() { sed -n 's/.*loss=\([^ ]*\).*/\1/p' out; }
same_loss() { # OPTIONS: those of the data are remembered, and so is the loss
    fit 0 "$1 --artifacts again" "--epochs 2"
    local fits=$(loss)
    status 0 "evaluate" "$burncc" evaluate again/model.onnx "$2"
    [ -n "$fits" ] && [ "$(loss)" = "$fits" ]
    result $? "its loss is that of fit"
}
same_loss "table.c --data csv:animals.csv,ignore=name,scale --valid animals.csv" animals.csv
same_loss "table.c --data csv:animals.csv,ignore=name --valid animals.csv --loss cross_entropy(label_smoothing=0.3)" \
    animals.csv
same_loss "table.c --data two.csv --valid two.csv --set features=2 --set classes=1" two.csv
same_loss "table.c --data line.csv --valid line.csv --set features=2 --set classes=1 --loss huber" line.csv
status 1 "a column that lacks" "$burncc" predict animals/model.onnx line.csv
says "has no column 'size'"
cc -std=c99 -w -c animals/model.c -o model.o
result $? "model.c is C"
fit 0 "table.c --data line.csv --set features=2 --set classes=1 --metrics mae,r2 --artifacts line --split 0.25"
says "valid_loss=$number valid_mae=$number valid_r2=$number seconds"
column valid_r2 0.9 1
printf 'x,y\n0.5,0.5\n' >new.csv
status 0 "numbers" "$burncc" predict line/model.onnx new.csv
says "^new.csv:1	1\.[0-9]+\$"
status 0 "measured" "$burncc" evaluate line/model.onnx line.csv
column mae 0 0.3
status 0 "two runs on a page" "$burncc" report animals line/report.html -o runs.html
[ "$(grep -c '<script class="run"' runs.html)" = 2 ]
result $? "it has both"
status 1 "no report" "$burncc" report line.csv
says "line.csv: is no report of a run"
status 4 "no folder" "$burncc" report nowhere
status 2 "no run" "$burncc" report
fit 0 "table.c --data two.csv --set features=2 --set classes=1 --artifacts two" "--epochs 20 --lr 0.03"
column "valid_accuracy(threshold=0)" 0.85 1
printf 'x,y\n0.5,-0.5\n-0.5,0.5\n' >new.csv
status 0 "one class against the other" "$burncc" predict two/model.onnx new.csv
says "^new.csv:1	below	"
says "^new.csv:2	above	"

fit 0 "table.c --data csv:animals.csv,ignore=name,scale --artifacts measured --train-metrics"
cmp animals/model.safetensors measured/model.safetensors
result $? "metrics of training change nothing"
grep -q "^12,train,accuracy,,1,[01]" measured/history.csv && ! grep -q train,acc animals/history.csv
result $? "they are there"

# images: from the model's size, by workers, optimizers, schedules, batches
fit 0 "image.c --data bars --valid bars --artifacts bars-run"
column valid_accuracy 0.9 1
status 0 "one file" "$burncc" predict bars-run/model.onnx bars/down/3.pgm bars/across/4.pgm
says "^bars/down/3.pgm	down	"
says "^bars/across/4.pgm	across	"
status 0 "a folder" "$burncc" evaluate bars-run/model.onnx bars
says "^items=40 "
same() { # two runs, OPTIONS of each, end with the same line but for the seconds; [DATA]
    "$burncc" fit image.c --data "${3:-bars}" --artifacts a --quiet --epochs 2 $1 2>err | sed 's/ seconds.*//' >one
    "$burncc" fit image.c --data "${3:-bars}" --artifacts b --quiet --epochs 2 $2 2>err | sed 's/ seconds.*//' >out
    [ -s one ] && cmp -s one out && cmp -s a/model.safetensors b/model.safetensors
    result $? "$1 is $2"
}
same "--workers 0" "--workers 2 --threads 2"
same "--batch 8" "--dim batch=8"
drawn=images:bars,flip,area=0.5,jitter=0.3
same "--workers 0" "--workers 1" $drawn
same "--workers 2" "--workers 4" $drawn
grep -q 'epoch 2/2 train: loss .*; [0-9]* % computing$' a/experiment.log
result $? "the log says how much of the time was computing"
fit 0 "image.c --data images:bars,flip,jitter=0.2,mean=0.1,deviation=0.3" "--epochs 1 --optimizer momentum --clip-norm \
--hyper clip_norm=1 --schedule cosine --batch 8 --metrics accuracy,top_k(k=1)"
grep -q 'size=12x12,gray,mean=' image-run/model.json && ! grep -q jitter image-run/model.json
result $? "what is drawn anew is not remembered"
fit 0 "image.c --data idx --target native --artifacts idx-run"
column valid_accuracy 0.9 1
status 0 "the files for tests" "$burncc" evaluate idx-run/model.onnx idx
says "^items=20 "

# checkpoints: a run that goes on is the run that was not interrupted
status 0 "four epochs" "$burncc" fit image.c --data bars --artifacts whole --quiet --epochs 4
status 0 "two epochs" "$burncc" fit image.c --data bars --artifacts parts --quiet --epochs 2
status 0 "two more" "$burncc" fit image.c --data bars --artifacts parts --quiet --epochs 4 --resume
cmp whole/model.safetensors parts/model.safetensors
result $? "it is the same"
for file in report.html history.csv experiment.log checkpoint train/epoch-4 tensorboard/valid; do
    [ -e parts/$file ]
    result $? "there is $file"
done
status 0 "no better epoch" "$burncc" fit image.c --data bars --best-by "valid accuracy" --patience 2 --lr 0 \
    --epochs 9 --quiet
says '^epochs=3 best_epoch=1 '
"$burncc" fit image.c --data bars --epochs 1000000 --plain --artifacts stopped >out 2>err &
for ((i = 0; i < 600; i++)); do
    [ -s stopped/history.csv ] && [ "$(wc -l <stopped/history.csv)" -gt 3 ] && break
    sleep 0.1
done
kill -TERM $!
wait $!
result $? "a run that is stopped ends well"
[ -s stopped/model.onnx ]
result $? "it leaves a model"
says '^epochs=[1-9]'

# an imported model, of one image at a time: a new head, all else frozen
status 0 "a head" "$burncc" fit "$models/digits/digits.onnx" --data images:bars --replace-head 2 --train-last 1 \
    --frozen-norm --artifacts head --epochs 6 --batch 4 --lr 0.01
says 'gradients of 4 are summed for a step; --shape image=batch,1,28,28 may let it compute more'
column valid_accuracy 0.9 1
status 0 "of the new head" "$burncc" predict head/model.onnx bars/down
says "^bars/down/19.pgm	down	"

fit 0 "$models/digits/digits.onnx --data images:bars --replace-head 2 --shape image=batch,1,28,28" \
    "--epochs 6 --batch 4 --lr 0.01 --artifacts open"
silent 'summed for a step'
column valid_accuracy 0.9 1

# sounds, texts
fit 0 "sound.c --data audio:tones,rate=8000,window=160,hop=80"
column valid_accuracy 0.9 1
status 0 "a sound" "$burncc" predict sound-run/model.onnx tones/low/2.wav
says "^tones/low/2.wav	low	"
fit 0 "text.c --data text:abc.txt,length=8"
column valid_accuracy 0.9 1
printf 'cd' >begin.txt
status 0 "a text goes on" "$burncc" predict text-run/model.onnx begin.txt --length 7 --temperature 0
says '^cdabcdabc$'

# faults
fit 1 "image.c --data bars --set classes=1 --loss mse --metrics nonsense"
says 'nonsense'
fit 1 "table.c --data animals.csv --set classes=2 --set features=125"
says 'the data has 3 classes, the model.s output 2: --replace-head 3'
fit 1 "table.c --data csv:animals.csv --set features=4"
says "no field for features|the module wants"
fit 1 "image.c --data nothing.png"
says 'nothing.png: no such file or folder'
fit 1 "image.c --data photos:bars"
says 'photos is no kind of data; there are mnist, '
fit 1 "image.c --data images:bars,sise=3"
says "has no option 'sise'; it has size=HxW"
fit 1 "image.c --data images:bars,size=3x"
says 'size=3x cannot be read'
fit 1 "image.c --data images:bars/down"
says 'nothing that could be predicted'
fit 1 "image.c --data bars" "--hyper wrong=1 --epochs 1"
says "adam takes no 'wrong'; it takes learning_rate"
status 2 "no data" "$burncc" fit image.c
says 'fit wants --data SOURCE'
status 2 "data without fit" "$burncc" image.c --epochs 2
status 2 "no file to look at" "$burncc" predict image-run/model.onnx
sed 's/x = relu.*/x = relu(linear(x, "fc1", 16));\n    x = exp(mul(x, 9000));/' table.c >steep.c
fit 1 "steep.c --data csv:animals.csv,ignore=name,scale"
says 'epoch 1, batch 1 .*: the loss is .*: output out.* inputs and parameters that are finite; it comes from line 6'
fit 1 "$models/digits/digits.onnx --data bars --replace-head 2 --frozen-norm" "--optimizer sgd --lr 100000"
says 'it comes from node [0-9]+ "[a-z0-9]+" .(Gemm|BatchNormalization).'
echo broken >bars/down/7.pgm
fit 1 "image.c --data bars"
says 'bars/down/7.pgm: is no image that can be decoded'
fit 0 "image.c --data bars --skip-bad" "--epochs 1"
finish
