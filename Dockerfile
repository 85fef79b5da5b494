# One container: the page on port 8501. Build: docker build -t kv-handoff .   Run: docker run -p 8501:8501 kv-handoff
ARG BASE=python:3.13-slim
ARG NODE=node:22-slim

FROM ${NODE} AS plotly
WORKDIR /src
COPY .ci/fetch-plotly-basic .ci/fetch-plotly-basic
RUN .ci/fetch-plotly-basic

FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /opt/venv
COPY pyproject.toml README.md ./
COPY kvmodel kvmodel
COPY app app
COPY data data
COPY --from=plotly /src/app/static/vendor app/static/vendor
RUN /opt/venv/bin/pip install --no-cache-dir . && /opt/venv/bin/python -m compileall -q /opt/venv

FROM ${BASE}
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 HOME=/tmp
USER 10001:10001
WORKDIR /tmp
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["python3", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/healthz', timeout=4).read()"]
CMD ["kv-handoff", "serve", "--address", "0.0.0.0", "--port", "8501", "--no-browser"]
