# SPDX-License-Identifier: MIT OR Apache-2.0
# docker build -t burncc . && docker run --rm -v "$PWD:/work" burncc net.onnx -o net.c
# The Debian package, built and installed; with a C compiler, for verify, run, bench and models in C.
FROM debian:12-slim AS build
WORKDIR /source/burncc
COPY . .
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get build-dep -y --no-install-recommends . \
    && dpkg-buildpackage -us -uc -b

FROM debian:12-slim
COPY --from=build /source/burncc_*.deb /tmp/
RUN apt-get update \
    && apt-get install -y --no-install-recommends /tmp/burncc_*.deb gcc libc6-dev \
    && rm -rf /tmp/burncc_*.deb /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["burncc"]
CMD ["--help"]
