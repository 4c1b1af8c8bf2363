# The portal's image: web, worker and beat are this image with another command.
# The embedded PostgreSQL and Valkey are not used here; see docker-compose.yml.

FROM node:22-bookworm-slim AS assets
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --omit=dev
COPY static static
RUN node static/build.mjs

FROM python:3.11-slim-bookworm AS packages
WORKDIR /src
COPY requirements-uv.lock requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements-uv.lock \
    && python -m venv --without-pip /opt/venv \
    && uv pip install --no-cache --python /opt/venv/bin/python --require-hashes \
       --compile-bytecode -r requirements.lock

FROM python:3.11-slim-bookworm AS portal
RUN useradd --system --uid 10001 --no-create-home slipway \
    && mkdir -p /var/lib/slipway/files \
    && chown -R 10001:10001 /var/lib/slipway
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SLIPWAY_HOME=/var/lib/slipway \
    SLIPWAY_HOST=0.0.0.0 \
    SLIPWAY_LOG_FORMAT=json
WORKDIR /app
COPY --from=packages /opt/venv /opt/venv
COPY manage.py pyproject.toml ./
COPY portal portal
COPY billing billing
COPY clusters clusters
COPY jobs jobs
COPY templates templates
COPY static static
COPY --from=assets /src/build build
RUN python manage.py collectstatic --noinput -v0
USER 10001:10001
EXPOSE 8000
CMD ["python", "-m", "uvicorn", "portal.asgi:application", "--host", "0.0.0.0", "--port", "8000", \
     "--no-access-log", "--log-level", "warning", "--no-proxy-headers"]

# Caddy, without root: it listens above port 1023 and owns its certificates.
FROM caddy:2 AS proxy
RUN chown -R 10001:10001 /data /config
USER 10001:10001
