# The page in one container, on port 8501, as a user without rights, on a file system that may be read-only:
#   docker build -t kv-handoff .
#   docker run --read-only --tmpfs /tmp -p 8501:8501 kv-handoff
# Settings are environment variables: see Hosting in README.md.
ARG BASE=python:3.13-slim
ARG NODE=node:22-slim

FROM ${NODE} AS plotly
WORKDIR /src
COPY .ci/fetch-plotly-basic .ci/fetch-plotly-basic
RUN .ci/fetch-plotly-basic

FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /opt/venv
COPY .ci/constraints.txt constraints.txt
COPY pyproject.toml README.md ./
COPY kvmodel kvmodel
COPY app app
COPY data data
COPY --from=plotly /src/app/static/vendor app/static/vendor
# Tests of libraries and headers of C are a tenth of what is installed, and nothing here runs them.
RUN /opt/venv/bin/pip install --no-cache-dir --no-compile -c constraints.txt . && /opt/venv/bin/pip uninstall -q -y setuptools pip \
 && find /opt/venv/lib -type d \( -name tests -o -path '*/pyarrow/include' \) -prune -exec rm -r {} + \
 && /opt/venv/bin/python -m compileall -q /opt/venv

FROM ${BASE}
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp KV_HANDOFF_ADDRESS=0.0.0.0 KV_HANDOFF_PORT=8501 KV_HANDOFF_PREPARE=1
USER 10001:10001
WORKDIR /tmp
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["python3", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['KV_HANDOFF_PORT'] + '/healthz', timeout=4).read()"]
CMD ["kv-handoff", "serve", "--no-browser"]
