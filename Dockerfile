# docker build -t custos .                                        CPU, embedded backbone inside
# docker build -t custos:cuda --build-arg TORCH=cu126 .           CUDA; run with --gpus all
# docker build -t custos:thin --build-arg BAKE_BACKBONE=no .      backbone fetched at first start
# docker run -p 8000:8000 --stop-timeout 150 -e CUSTOS_API_KEYS=$(openssl rand -hex 32) custos
#
# A tag may come to mean another image. To build on the same one always, name it by its digest:
#
#   docker buildx imagetools inspect python:3.11-slim-bookworm      shows the digest
#   docker build --build-arg BASE=python:3.11-slim-bookworm@sha256:... -t custos .
#
# Packages are installed by the hashes in requirements.lock. torch is not in it, as every build of torch
# has other files: TORCH_SHA256 is the hash of the file, as https://download.pytorch.org/whl/cpu/torch/
# names it.
ARG BASE=python:3.11-slim-bookworm
FROM $BASE AS build
ARG TORCH=cpu
ARG TORCH_SHA256
ARG BAKE_BACKBONE=yes
ENV CUSTOS_CACHE=/opt/custos/cache PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY . .
RUN PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/$TORCH \
    docker/steps.sh install /opt/custos/venv "$TORCH" && \
    cp docker/steps.sh /opt/custos/steps.sh
RUN mkdir -p "$CUSTOS_CACHE" && \
    if [ "$BAKE_BACKBONE" = yes ]; then docker/steps.sh bake /opt/custos/venv; fi

# The installed wheel holds everything that runs, so the sources stay behind.
FROM $BASE
RUN useradd --uid 10001 --create-home custos
COPY --from=build --chown=custos:custos /opt/custos /opt/custos
ENV CUSTOS_CACHE=/opt/custos/cache PATH=/opt/custos/venv/bin:$PATH
WORKDIR /home/custos
USER custos
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["/opt/custos/steps.sh", "healthy", "/opt/custos/venv", "http://127.0.0.1:8000"]
# Other machines can reach it, so it does not start without CUSTOS_API_KEYS.
ENTRYPOINT ["custos"]
CMD ["serve", "--host", "0.0.0.0"]
