/** Which variables of the environment are taken for secrets, and which are not. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { SECRET_NAMES, SECRET_PATTERN } from '../../../supervisor/options/secret-names.js';
import { ROOT } from '../../helpers/server.js';

const SECRETS = `AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_CONTAINER_AUTHORIZATION_TOKEN
AWS_CONTAINER_CREDENTIALS_FULL_URI GOOGLE_APPLICATION_CREDENTIALS AZURE_CLIENT_SECRET AZURE_STORAGE_KEY
AZURE_STORAGE_CONNECTION_STRING STORAGE_ACCOUNT_KEY HF_TOKEN HUGGING_FACE_HUB_TOKEN OPENAI_API_KEY WANDB_API_KEY APIKEY
GITHUB_TOKEN CI_JOB_TOKEN GH_PAT NPM_TOKEN npm_config__authToken NPM_CONFIG__AUTH_TOKEN DATABASE_URL APP_DATABASE_URL
DB_URI REDIS_URL CELERY_BROKER_URL MONGODB_URI SENTRY_DSN PGPASSWORD MYSQL_PWD SMTP_PASS db_password MY_PASSWD
KEY_PASSPHRASE SSH_PRIVATE_KEY TLS_PRIVATEKEY JWT_SECRET DJANGO_SECRET_KEY TOKEN PASS SIGNING_KEY`.split(
  /\s+/,
);

/** Runtimes, their libraries, shells and containers have these, and need most of them. */
const OTHERS =
  `PATH HOME USER PWD OLDPWD INIT_CWD SHELL LANG LC_ALL TZ TERM TMPDIR HOSTNAME LD_LIBRARY_PATH LD_PRELOAD
NODE_OPTIONS NODE_ENV NODE_PATH NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE PYTHONPATH PYTHONHOME
VIRTUAL_ENV PYTHON_VERSION GPG_KEY CUDA_VISIBLE_DEVICES CUDA_HOME NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES
HIP_VISIBLE_DEVICES OMP_NUM_THREADS MKL_NUM_THREADS TOKENIZERS_PARALLELISM HF_HOME HF_TOKEN_PATH HF_HUB_OFFLINE
TRANSFORMERS_CACHE TORCH_HOME XDG_CACHE_HOME HTTP_PROXY HTTPS_PROXY NO_PROXY AWS_REGION AWS_DEFAULT_REGION
GOOGLE_CLOUD_PROJECT KUBERNETES_SERVICE_HOST MODEL_URL MODEL_KEY S3_KEY COMPASS BYPASS_CACHE DISPATCH
MONKEY_PATCH`.split(/\s+/);

test('secrets are found by their names, in capitals or not', () => {
  assert.deepEqual(
    SECRETS.filter((name) => !SECRET_PATTERN.test(name)),
    [],
  );
});

test('what runtimes, libraries and containers need is no secret', () => {
  assert.deepEqual(
    OTHERS.filter((name) => SECRET_PATTERN.test(name)),
    [],
  );
});

test('docs/security.md shows the expressions', () => {
  const page = readFileSync(`${ROOT}docs/security.md`, 'utf8');
  assert.ok(page.includes(`\`\`\`text\n${SECRET_NAMES.join('\n')}\n\`\`\``), SECRET_NAMES.join('\n'));
});
