# dpaudit for CI without Python: docker build -t dpaudit . && docker run --rm -v "$PWD:/audits" dpaudit run audits.yaml
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[html,search]" pytest && rm -r /wheels \
    && useradd --create-home --uid 1000 auditor
USER auditor
WORKDIR /audits
ENTRYPOINT ["dpaudit"]
CMD ["run"]
