/**
 * Environment variables whose names look like secrets. A server of a model store without an app withholds them from
 * workers unless --withhold-env is given. They do not match variables that runtimes and libraries need: PWD, GPG_KEY (of
 * Python images), TOKENIZERS_PARALLELISM, HF_HOME, CUDA_VISIBLE_DEVICES. docs/security.md shows these expressions, and a
 * test compares them.
 */
import { NotAllowed } from './units.js';

export const SECRET_NAMES: readonly string[] = [
  '.*(?:SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|PRIVATE_?KEY).*',
  '(?:.*_)?(?:TOKEN|PASS|PAT|DSN|CONNECTION_STRING)',
  '.*AUTH_?TOKEN',
  '.+_PWD',
  '(?:.*_)?(?:API|ACCOUNT|STORAGE|AUTH|SIGNING|ENCRYPTION|MASTER)_?KEY',
  '(?:.*_)?ACCESS_?KEY(?:_ID)?',
  '(?:.*_)?(?:DATABASE|DB|REDIS|MONGO|MONGODB|POSTGRES|POSTGRESQL|MYSQL|AMQP|CLOUDAMQP|RABBITMQ|BROKER)_UR[IL]',
];

/** Matches whole names, in any case. */
export const SECRET_PATTERN = new RegExp(`^(?:${SECRET_NAMES.join('|')})$`, 'i');

/** Reads `--withhold-env`: an expression that matches whole names; null for an empty text. @throws NotAllowed */
export function parseNamePattern(raw: unknown): RegExp | null {
  try {
    if (typeof raw === 'string') return raw.trim() === '' ? null : new RegExp(`^(?:${raw})$`);
  } catch {
    // not a regular expression: refused below
  }
  throw new NotAllowed(
    "a regular expression that matches whole variable names, such as AWS_.*|.*_TOKEN, or '' for none",
  );
}
