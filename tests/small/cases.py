# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models with the outputs they must give, computed in plain Python double precision.

Each function of a family makes one Model: ONNX bytes, data sets of inputs and outputs (one for most, several for
dynamic shapes), and files that lie beside the model. They cover the operator families once, so that a clone without
any other test data tests import to run."""
import attention_cases
import byte_cases
import file_cases
import found_cases
import network_cases
import operator_cases
import sequence_cases
import string_cases
import type_cases
import view_cases

# What every processor runs.
EVERYWHERE = (network_cases.ALL + attention_cases.ALL + view_cases.ALL + type_cases.ALL + file_cases.ALL +
              sequence_cases.ALL + string_cases.ALL)
ALL = EVERYWHERE + found_cases.ALL + operator_cases.ALL + byte_cases.ALL

# Once more with all of the C compiler's optimisations: what goes wrong only there.
OPTIMIZED = (network_cases.softmax_of_large,)
