/** `config.properties` of Multi Model Server: the options of each key, mistakes that end the start, and warnings. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import {
  KEYS_LEFT_ASIDE,
  MMS_KEYS,
  MMS_KEY_NAMES,
  MMS_NOTES,
  type MmsKeyName,
} from '../../../../supervisor/options/mms/mms-keys.js';
import { readMmsConfig } from '../../../../supervisor/options/mms/read-config.js';
import { resolveOptions, type Options } from '../../../../supervisor/options/resolve.js';
import { MODELS_KEY } from '../../../../supervisor/options/mms/model-settings.js';
import { OPTIONS } from '../../../../supervisor/options/table.js';
import { appFolder } from '../../../worker/app-folder.js';
import { holdsSection, printTable } from '../../../helpers/doc-page.js';

const NAME = 'conf/config.properties';

function read(
  t: TestContext,
  text: string,
  env: Record<string, string> = {},
): ReturnType<typeof readMmsConfig> {
  const path = join(appFolder(t, { 'a.txt': '' }), 'config.properties');
  writeFileSync(path, text);
  return readMmsConfig({ name: NAME, path }, env);
}

function resolved({ environment, file }: ReturnType<typeof readMmsConfig>): Options {
  return resolveOptions([environment, file]).options;
}

/** For each key: a good value with its options, and a bad one with the source and the remedy of its error. */
const EACH: Readonly<
  Record<MmsKeyName, readonly [good: string, comesTo: Partial<Options>, bad: string, allowed: string]>
> = {
  inference_address: [
    'http://0.0.0.0:8080',
    { host: '0.0.0.0', port: 8080 },
    '0.0.0.0:8080',
    'http://host:port or https://host:port, with a port up to 65535 and no path, or unix:/path of a socket',
  ],
  management_address: [
    'unix:/run/m.sock',
    { managementPort: '/run/m.sock' },
    'http://127.0.0.1:65536',
    'http://host:port or https://host:port, with a port up to 65535 and no path, or unix:/path of a socket',
  ],
  metrics_address: [
    'http://0.0.0.0',
    { metricsHost: '0.0.0.0', metricsPort: 8082 },
    'http://127.0.0.1:8082/metrics',
    'http://host:port or https://host:port, with a port up to 65535 and no path, or unix:/path of a socket',
  ],
  metrics_mode: ['legacy', { metricsMode: 'legacy' }, 'both', 'one of log, prometheus, legacy'],
  metric_time_interval: [
    '10',
    { metricInterval: 10_000 },
    '0',
    'a number of seconds above 0, such as 120, up to 2073600',
  ],
  model_store: ['models', { modelStore: 'models' }, '', ''],
  load_models: [
    'cats=cats.mar, dogs.mar',
    {
      models: [
        { name: 'cats', url: 'cats.mar' },
        { name: null, url: 'dogs.mar' },
      ],
    },
    'my cats=cats.mar',
    'all, none, or paths in the model store, separated by commas, each optionally after a name: digits,cats=zoo/cats',
  ],
  allowed_urls: [
    'https://models.example.com/zoo/',
    {
      allowedUrls: {
        entries: [{ protocol: 'https:', hostname: 'models.example.com', port: '', path: '/zoo/' }],
        unusable: [],
      },
    },
    '',
    '',
  ],
  default_service_handler: [
    'service.py:handle',
    { defaultHandler: 'service.py:handle' },
    ':handle',
    'a file of the model, optionally followed by a function or class: service:handle',
  ],
  default_workers_per_model: ['4', { defaultWorkers: 4 }, '2000', 'a whole number from 1 to 1024'],
  number_of_gpu: ['2', { gpus: 'first:2' }, 'all', 'a whole number from 0 to 1024'],
  decode_input_request: ['false', { rawItems: true }, 'no', 'true or false'],
  blacklist_env_vars: [
    'AWS_.*|SECRET',
    { withholdEnv: /^(?:AWS_.*|SECRET)$/ },
    'AWS_(',
    "a regular expression that matches whole variable names, such as AWS_.*|.*_TOKEN, or '' for none",
  ],
  job_queue_size: ['100', { queueSize: 100 }, 'many', 'a whole number from 0 to 1000000'],
  default_response_timeout: [
    '120',
    { runTimeout: 120_000 },
    '0',
    'a number of seconds above 0, such as 120, up to 2073600',
  ],
  default_response_timeout_seconds: [
    '1.5',
    { runTimeout: 1500 },
    '2m',
    'a number of seconds above 0, such as 120, up to 2073600',
  ],
  default_startup_timeout: [
    '300',
    { initTimeout: 300_000 },
    '-5',
    'a number of seconds above 0, such as 120, up to 2073600',
  ],
  unregister_model_timeout: [
    '0',
    { unregisterTimeout: 0 },
    '99999999',
    'a number of seconds from 0, such as 120, up to 2073600',
  ],
  max_request_size: ['6553500', { maxBody: 6_553_500 }, '-1', 'a size such as 512kb, 10mb or 1gb'],
  max_response_size: ['1048576', { maxOutput: 1_048_576 }, 'big', 'a size such as 512kb, 10mb or 1gb'],
  cors_allowed_origin: [
    'https://app.example.com',
    { corsOrigin: ['https://app.example.com'] },
    'app.example.com',
    '* for every page, or origins separated by commas, such as https://app.example.com: no path, no slash at the end',
  ],
  cors_allowed_methods: [
    'GET, PUT',
    { corsMethods: ['GET', 'PUT'] },
    'GET PUT',
    'names separated by commas, such as GET, POST',
  ],
  cors_allowed_headers: [
    'Content-Type, X-Mine',
    { corsHeaders: ['Content-Type', 'X-Mine'] },
    'X-Mine: 1',
    'names separated by commas, such as Content-Type, X-Request-Id',
  ],
  certificate_file: ['cert.pem', { tlsCert: 'cert.pem' }, '', ''],
  private_key_file: ['key.pem', { tlsKey: 'key.pem' }, '', ''],
};

for (const key of MMS_KEY_NAMES) {
  const [good, comesTo, bad, allowed] = EACH[key];
  test(`${key}=${good} is ${JSON.stringify(comesTo)}, from the file and from the environment`, (t) => {
    const inFile = read(t, `${key}=${good}`);
    const inEnvironment = read(t, 'enable_envvars_config=true', {
      [`MMS_${key.toUpperCase()}`]: good,
    });
    for (const config of [inFile, inEnvironment]) {
      assert.deepEqual(config.warnings, []);
      const options = resolved(config);
      assert.deepEqual({ ...options, ...comesTo }, options);
      assert.deepEqual(
        Object.keys(comesTo),
        [...MMS_KEYS[key].sets].filter((name) => name in comesTo),
      );
    }
  });
  if (bad === '') continue;
  test(`${key}=${bad} is refused with file, line, key, value and remedy`, (t) => {
    const message = `${NAME} line 2: ${key}: "${bad}" is not allowed; give ${allowed}.`;
    assert.throws(() => resolved(read(t, `# mine\n${key}=${bad}`)), { code: 'SERVE_CONFIG', message });
  });
}

/** All keys of Multi Model Server's and TorchServe's configs. */
const THEIRS = `
  inference_address management_address model_store load_models default_workers_per_model job_queue_size
  default_response_timeout default_response_timeout_seconds unregister_model_timeout number_of_gpu max_request_size
  max_response_size decode_input_request default_service_handler preload_model cors_allowed_origin cors_allowed_methods
  cors_allowed_headers blacklist_env_vars keystore keystore_pass keystore_type private_key_file certificate_file
  number_of_netty_threads netty_client_threads async_logging prefer_direct_buffer debug model_server_home plugins_path vmargs
  metric_time_interval enable_envvars_config use_native_io io_ratio metrics_address default_startup_timeout allowed_urls
  use_env_allowed_urls enable_model_api disable_token_authorization token_expiration_min models metrics_mode metrics_config
  model_metrics_auto_detect disable_system_metrics service_envelope install_py_dep_per_model enable_metrics_api`;

test('every key of Multi Model Server and TorchServe is known, with or without an effect', (t) => {
  const known = [...MMS_KEY_NAMES, ...Object.keys(KEYS_LEFT_ASIDE), 'enable_envvars_config', MODELS_KEY];
  const theirs = THEIRS.trim().split(/\s+/);
  assert.deepEqual(
    theirs.filter((key) => !known.includes(key)),
    [],
  );
  const aside = theirs.filter((key) => Object.hasOwn(KEYS_LEFT_ASIDE, key));
  const { warnings } = read(t, aside.map((key) => `${key}=x`).join('\n'));
  assert.equal(warnings.length, 1);
  for (const key of aside) assert.ok(warnings[0]?.includes(`: ${key}`), key);
});

describe('variables of the environment in a value', () => {
  test('are replaced anywhere in it', (t) => {
    const text = 'model_store=$$ROOT$$/models/$$STAGE$$\ninference_address=http://$$HOST$$:80';
    const options = resolved(read(t, text, { ROOT: '/srv', STAGE: 'blue', HOST: 'localhost' }));
    assert.deepEqual([options.modelStore, options.host], ['/srv/models/blue', 'localhost']);
  });

  test("end the start if they are not set, with Multi Model Server's message", (t) => {
    assert.throws(() => read(t, '\n\nmodel_store=$$ROOT$$/models'), {
      code: 'SERVE_CONFIG',
      message: `${NAME} line 3: model_store: Invalid Environment Variable ROOT: "$$ROOT$$/models" uses it, but it is not set. Set it, or write its value here.`,
    });
  });

  test('may be empty, and a single dollar is a dollar', (t) => {
    const options = resolved(read(t, 'model_store=/srv$$NONE$$/$HOME/$$5', { NONE: '' }));
    assert.equal(options.modelStore, '/srv/$HOME/$$5');
  });
});

describe('variables that take precedence over the file', () => {
  test('count only if the file enables them; otherwise a warning lists them', (t) => {
    const env = { MMS_JOB_QUEUE_SIZE: '7', MMS_MODEL_STORE: 'there', MMS_CONFIG_FILE: NAME };
    const off = read(t, 'job_queue_size=5', env);
    assert.equal(resolved(off).queueSize, 5);
    assert.deepEqual(off.warnings, [
      `${NAME} does not contain enable_envvars_config=true, so these variables are not read: MMS_MODEL_STORE, MMS_JOB_QUEUE_SIZE`,
    ]);
    const on = read(t, 'job_queue_size=5\nenable_envvars_config=TRUE', env);
    assert.deepEqual([resolved(on).queueSize, resolved(on).modelStore, on.warnings], [7, 'there', []]);
  });

  test('are named in a refusal, and an empty one counts as not set', (t) => {
    const text = 'enable_envvars_config=true\njob_queue_size=5';
    assert.equal(resolved(read(t, text, { MMS_JOB_QUEUE_SIZE: '' })).queueSize, 5);
    assert.throws(() => resolved(read(t, text, { MMS_JOB_QUEUE_SIZE: 'x' })), {
      message: 'MMS_JOB_QUEUE_SIZE: "x" is not allowed; give a whole number from 0 to 1000000.',
    });
  });

  test('a switch that is neither true nor false is refused', (t) => {
    assert.throws(() => read(t, 'enable_envvars_config=yes'), {
      message: `${NAME} line 1: enable_envvars_config: "yes" is not allowed; give true or false.`,
    });
  });
});

describe('https', () => {
  const PAIR = 'certificate_file=c.pem\nprivate_key_file=k.pem\n';

  for (const [text, tlsFor] of [
    [`${PAIR}inference_address=https://127.0.0.1`, ['main']],
    [`management_address=https://127.0.0.1\n${PAIR}`, ['management']],
    [
      `inference_address=https://a\nmanagement_address=HTTPS://b\nmetrics_address=https://c\n${PAIR}`,
      ['main', 'management', 'metrics'],
    ],
    [`${PAIR}inference_address=http://127.0.0.1`, []],
    ['inference_address=http://127.0.0.1', ['main']],
  ] as const) {
    test(`${JSON.stringify(text)} enables TLS for ${JSON.stringify(tlsFor)}, given a certificate`, (t) => {
      assert.deepEqual(resolved(read(t, text)).tlsFor, tlsFor);
    });
  }

  test('of the file is overridden by http in the environment', (t) => {
    const text = 'enable_envvars_config=true\ninference_address=https://127.0.0.1';
    const { environment, file } = read(t, text, { MMS_INFERENCE_ADDRESS: 'http://127.0.0.1' });
    assert.deepEqual(resolveOptions([environment, file]).options.tlsFor, []);
  });

  test('has its own default ports', (t) => {
    const options = resolved(read(t, 'inference_address=https://a\nmanagement_address=https://b'));
    assert.deepEqual([options.port, options.managementPort], [443, 8444]);
  });

  test('of the file counts together with an address in the environment', (t) => {
    const text = `enable_envvars_config=true\n${PAIR}inference_address=https://127.0.0.1`;
    const options = resolved(read(t, text, { MMS_MANAGEMENT_ADDRESS: 'https://127.0.0.1' }));
    assert.deepEqual(options.tlsFor, ['main', 'management']);
    const other = resolved(read(t, text, { MMS_INFERENCE_ADDRESS: 'http://127.0.0.1' }));
    assert.deepEqual(other.tlsFor, []);
    const bare = 'enable_envvars_config=true\ninference_address=https://127.0.0.1';
    const plain = resolved(read(t, bare, { MMS_INFERENCE_ADDRESS: 'http://127.0.0.1' }));
    assert.deepEqual(plain.tlsFor, [], 'without a certificate, too');
  });
});

describe('default_response_timeout_seconds', () => {
  for (const [text, runTimeout] of [
    ['default_response_timeout_seconds=5\ndefault_response_timeout=120', 5000],
    ['default_response_timeout=120\ndefault_response_timeout_seconds=5', 5000],
    ['default_response_timeout_seconds=-1\ndefault_response_timeout=120', 120_000],
  ] as const)
    test(`${text.replace('\n', ', ')}: ${runTimeout} ms`, (t) => {
      assert.equal(resolved(read(t, text)).runTimeout, runTimeout);
    });
});

describe('warnings', () => {
  test('list all keys without effect once, with their lines', (t) => {
    const text = 'vmargs=-Xmx4g\njob_queue_size=5\nnumber_of_netty_threads=8';
    assert.deepEqual(read(t, text).warnings, [
      `${NAME}: these keys have no effect here and are ignored: line 1: vmargs, line 3: number_of_netty_threads`,
    ]);
  });

  test('name a mistyped key and the nearest known one', (t) => {
    assert.deepEqual(read(t, 'job_que_size=5\nxyzzy=1').warnings, [
      `${NAME} line 1: job_que_size: there is no such key; did you mean job_queue_size?`,
      `${NAME} line 2: xyzzy: there is no such key`,
    ]);
  });

  test('name a key that is given twice; its last value counts', (t) => {
    const config = read(t, 'job_queue_size=5\njob_queue_size=6');
    assert.equal(resolved(config).queueSize, 6);
    assert.deepEqual(config.warnings, [
      `${NAME} line 2: job_queue_size is given more than once; the last value counts`,
    ]);
  });

  test('do not concern a key without a value, which counts as not set', (t) => {
    const config = read(t, 'job_queue_size=\ninference_address=');
    assert.deepEqual([resolved(config).queueSize, config.warnings], [1024, []]);
  });

  test('do not concern blacklist_env_vars without a value, which counts as set', (t) => {
    const { values } = read(t, 'blacklist_env_vars=').file;
    assert.deepEqual(values, { withholdEnv: '' });
  });
});

describe('a file that is not a config', () => {
  const notOne = (what: string): { code: string; message: string } => ({
    code: 'SERVE_CONFIG',
    message: `${NAME}: ${what}; give a file of lines such as job_queue_size=100.`,
  });

  test('and never ends is refused', { skip: process.platform !== 'linux' }, () => {
    const expected = notOne('it has more than 1048576 bytes');
    assert.throws(() => readMmsConfig({ name: NAME, path: '/dev/zero' }, {}), expected);
  });

  test('and is binary is refused', (t) => {
    assert.throws(() => read(t, '\x7fELF\0\0'), notOne('it is not a text file'));
  });

  test('and has 250,000 lines is read to its end', { timeout: 60_000 }, (t) => {
    const { warnings } = read(t, `${'a=1\n'.repeat(250_000)}xyzzy=1`);
    assert.equal(warnings.at(-1), `${NAME} line 250001: xyzzy: there is no such key`);
  });

  test('has its keys escaped and shortened for the terminal', (t) => {
    assert.deepEqual(read(t, `\x1b[2J\\nINFO=1\n${'k'.repeat(500_000)}=1`).warnings, [
      `${NAME} line 1: "\\u001b[2J\\nINFO": there is no such key`,
      `${NAME} line 2: "${'k'.repeat(100)}": there is no such key`,
    ]);
  });
});

holdsSection('config-properties.md', 'keys', () =>
  printTable(
    ['key', 'sets', 'value'],
    MMS_KEY_NAMES.map((key) => {
      const flags = MMS_KEYS[key].sets.map((name) => `\`${OPTIONS[name].flag}\``);
      return [`\`${key}\``, flags.join(', '), MMS_NOTES[key]];
    }),
  ),
);

holdsSection('config-properties.md', 'keys-left-aside', () =>
  printTable(
    ['keys', 'why'],
    [...keysByReason()].map(([why, keys]) => [keys.map((key) => `\`${key}\``).join(', '), why]),
  ),
);

function keysByReason(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const [key, why] of Object.entries(KEYS_LEFT_ASIDE)) {
    const keys = found.get(why) ?? [];
    found.set(why, [...keys, key]);
  }
  return found;
}
