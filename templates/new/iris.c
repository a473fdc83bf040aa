// Which iris is it? Four lengths in centimetres (sepal and petal, each length and width) give the probabilities of
// setosa, versicolor and virginica. A logistic regression on the 150 flowers of Anderson and Fisher.
#include <burncc/model.h>

MODEL(iris)
{
    static const float weights[4][3] = {
        { -1.54f, 0.97f, 0.57f }, { 3.23f, -0.8f, -2.43f }, { -1.39f, -0.38f, 1.77f }, { -3.04f, -1.36f, 4.4f },
    };
    static const float bias[3] = { 7.88f, 2.52f, -10.41f };
    Tensor flower = input("flower", F32, 1, 4);
    Tensor sums = add(matmul(flower, constant(F32, weights, 4, 3)), constant(F32, bias, 3));
    output("kinds", softmax(sums, -1));
}
