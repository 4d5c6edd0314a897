/**
 * Variables of the environment that are secrets by their names. Where models come as archives of other people, workers do
 * not get them unless the operator says what else to withhold. What runtimes and their libraries need is none of them:
 * PWD, GPG_KEY (a Python image's), TOKENIZERS_PARALLELISM, HF_HOME, CUDA_VISIBLE_DEVICES. docs/security.md shows these
 * expressions, and a test compares them.
 */
export const SECRET_NAMES: readonly string[] = [
  '.*(?:SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|PRIVATE_?KEY).*',
  '(?:.*_)?(?:TOKEN|PASS|PAT|DSN|CONNECTION_STRING)',
  '.*AUTH_?TOKEN',
  '.+_PWD',
  '(?:.*_)?(?:API|ACCOUNT|STORAGE|AUTH|SIGNING|ENCRYPTION|MASTER)_?KEY',
  '(?:.*_)?ACCESS_?KEY(?:_ID)?',
  '(?:.*_)?(?:DATABASE|DB|REDIS|MONGO|MONGODB|POSTGRES|POSTGRESQL|MYSQL|AMQP|CLOUDAMQP|RABBITMQ|BROKER)_UR[IL]',
];

/** It matches whole names, in capitals or not. */
export const SECRET_PATTERN = new RegExp(`^(?:${SECRET_NAMES.join('|')})$`, 'i');
