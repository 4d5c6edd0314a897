/** The table of options, and the tables of docs/options.md, which are printed from it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigOptions, ProgramOptions } from '../../../protocol/option-types.js';
import { EXIT_CODES } from '../../../supervisor/command/server-process.js';
import { parseOption } from '../../../supervisor/options/resolve.js';
import { MAX_CONCURRENCY } from '../../../protocol/wire/limits.js';
import { OPTIONS, OPTION_GROUPS, OPTION_NAMES, type OptionName } from '../../../supervisor/options/table.js';
import { holdsSection, printTable } from '../../helpers/doc-page.js';

holdsSection('options.md', 'options', () => {
  const tables = OPTION_GROUPS.map(
    ([group, names]) => `### ${group}\n${printTable(HEADER, names.map(rowOf))}`,
  );
  return `\n${tables.join('')}`;
});

const HEADER = ['flag', 'scope', 'default', 'meaning, and why'];

function rowOf(name: OptionName): string[] {
  const { flag, value, scope, defaultText, help } = OPTIONS[name];
  const given = value === null ? `\`${flag}\`` : `\`${flag} ${value}\``;
  return [given, scope, defaultText, help];
}

holdsSection('options.md', 'exit-codes', () =>
  printTable(
    ['code', 'meaning'],
    Object.values(EXIT_CODES).map(({ code, meaning }) => [String(code), meaning]),
  ),
);

test('every option has its meaning, in one group', () => {
  assert.deepEqual([...OPTION_NAMES].sort(), Object.keys(OPTIONS).sort());
  assert.ok(OPTIONS.concurrency.help.includes(`(at most ${MAX_CONCURRENCY})`));
});

test('every flag is its key in kebab case, behind no- if it switches off', () => {
  for (const name of OPTION_NAMES) {
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    assert.equal(OPTIONS[name].flag.replace('--no-', '--'), flag);
  }
});

/** Defaults that the parser cannot read: the behaviour without the option, in words. */
const IN_WORDS: readonly OptionName[] = [
  'jobRetention',
  'jobBytes',
  'name',
  'modelStore',
  'mmsConfig',
  'defaultWorkers',
  'defaultHandler',
  'withholdEnv',
  'rawItems',
  'models',
  'allowedUrls',
  'managementPort',
  'managementKey',
  'managementInsecure',
  'apiKey',
  'tlsCert',
  'tlsKey',
  'tlsFor',
  'readyFile',
  'page',
  'openapiAll',
  'apiKeyFile',
  'corsOrigin',
  'corsMethods',
  'corsHeaders',
  'workers',
  'gpus',
  'workersPerGpu',
  'minWorkers',
  'maxWorkers',
  'idleTimeout',
  'concurrency',
  'memoryBudget',
  'gpuMemoryBudget',
  'python',
  'providers',
  'accessLog',
  'exposeErrors',
  'compress',
  'watch',
  'logLocation',
  'metrics',
  'metricsPort',
  'metricsMode',
  'task',
  'metricsLocation',
  'webhookSecret',
  'spawnConcurrency',
];

for (const name of OPTION_NAMES) {
  const { defaultText, default: value, parse } = OPTIONS[name];
  if (IN_WORDS.includes(name)) continue;
  test(`the default of ${name} is the one in the help: ${defaultText}`, () => {
    assert.equal(parse(defaultText), value);
  });
}

const DURATION = 'a duration with a unit, such as 500ms, 30s or 5m, up to 24 days';
const POSITIVE = 'a duration above 0, such as 500ms, 30s or 5m';
const SIZE = 'a size such as 512kb, 10mb or 1gb';

/** A bad value of every option, and the allowed values that its refusal lists. */
const BAD: Readonly<Record<OptionName, readonly [raw: string | number, allowed: string]>> = {
  host: [' ', 'an address or a host name'],
  port: ['65536', 'a port from 0 to 65535, or the path of a unix socket'],
  tlsCert: [' ', 'the path of a PEM file'],
  tlsKey: [' ', 'the path of a PEM file'],
  tlsFor: ['main,both', 'one or several of main, management, metrics, separated by commas'],
  readyFile: [' ', 'the path of a file'],
  page: ['yes', 'true or false'],
  openapiAll: ['yes', 'true or false'],
  apiKey: ['key, ,', 'one key or several, separated by commas, each of up to 1024 visible ASCII characters'],
  apiKeyFile: [' ', 'the path of a file'],
  corsOrigin: [
    'https://app.example.com/',
    '* for every page, or origins separated by commas, such as https://app.example.com: no path, no slash at the end',
  ],
  corsMethods: ['GET, ,POST', 'names separated by commas, such as GET, POST'],
  corsHeaders: ['X-A:b', 'names separated by commas, such as Content-Type, X-Request-Id'],
  name: [
    'my model',
    'up to 128 letters, digits, dots, underscores and hyphens, the first a letter, a digit or an underscore',
  ],
  modelStore: [' ', 'the path of a folder'],
  mmsConfig: [' ', 'the path of a file'],
  defaultHandler: [
    'two words',
    'a file of the model, optionally followed by a function or class: service:handle',
  ],
  defaultWorkers: ['0', 'a whole number from 1 to 1024'],
  withholdEnv: [
    'AWS_(',
    "a regular expression that matches whole variable names, such as AWS_.*|.*_TOKEN, or '' for none",
  ],
  rawItems: ['yes', 'true or false'],
  models: [
    'digits,my cat=zoo/cats',
    'all, none, or paths in the model store, separated by commas, each optionally after a name: digits,cats=zoo/cats',
  ],
  // An unusable entry causes a warning only.
  allowedUrls: [
    8080,
    'beginnings of addresses, separated by commas: https://models.example.com/zoo/, http://store.internal:9000/',
  ],
  ping: ['never', 'one of health, always-200'],
  mmsExceptionStatus: ['501', 'one of 503, 500'],
  managementPort: ['65536', 'a port from 0 to 65535, or the path of a unix socket'],
  managementHost: [' ', 'an address or a host name'],
  managementKey: [
    'key, ,',
    'one key or several, separated by commas, each of up to 1024 visible ASCII characters',
  ],
  managementInsecure: ['yes', 'true or false'],
  unregisterTimeout: ['soon', DURATION],
  workers: ['0', 'a whole number from 1 to 1024'],
  gpus: ['fast', 'all, none, or a comma-separated list such as 0,2 or GPU-5d5ba0d6 or MIG-c7384736'],
  workersPerGpu: ['65', 'a whole number from 1 to 64'],
  minWorkers: ['-1', 'a whole number from 0 to 1024'],
  maxWorkers: ['0', 'a whole number from 1 to 1024'],
  idleTimeout: ['0s', POSITIVE],
  targetWait: ['0s', POSITIVE],
  standby: ['-1', 'a whole number from 0 to 64'],
  python: [' ', 'the path or the name of a program'],
  providers: ['cuda;cpu', 'names of execution providers, separated by commas, such as cuda,cpu'],
  queueSize: ['-1', 'a whole number from 0 to 1000000'],
  queueBytes: ['1tb', SIZE],
  jobs: ['disk', 'memory, local, local: and the path of a folder, or redis://host:port of one Redis'],
  jobRetention: ['1d', DURATION],
  jobBytes: ['1 tb', SIZE],
  queueTimeout: ['0s', POSITIVE],
  batchSize: ['0', 'a whole number from 1 to 1024'],
  task: ['classify', 'one of embedding, rerank'],
  concurrency: ['129', 'a whole number from 1 to 128'],
  maxBatchDelay: ['5', DURATION],
  runTimeout: ['30', DURATION],
  websocketIdleTimeout: ['0s', POSITIVE],
  initTimeout: ['25d', DURATION],
  drainTimeout: ['soon', DURATION],
  drainLag: ['-1s', DURATION],
  maxBody: ['10mbb', SIZE],
  maxOutput: ['', SIZE],
  compress: ['yes', 'true or false'],
  unsentBytes: ['1 tb', SIZE],
  restartLimit: ['1.5', 'a whole number from 0 to 1000000'],
  onCrashLoop: ['pray', 'one of stay, exit'],
  headerTimeout: ['0', POSITIVE],
  bodyTimeout: ['1 parsec', DURATION],
  stallTimeout: ['0ms', POSITIVE],
  accessLog: ['yes', 'true or false'],
  exposeErrors: ['yes', 'true or false'],
  watch: ['yes', 'true or false'],
  logFormat: ['xml', 'one of text, json'],
  logPrefix: ['banana', 'one of none, potassium'],
  logLevel: ['loud', 'one of debug, info, warn, error, silent'],
  logLocation: [' ', 'the path of a folder'],
  metrics: ['maybe', 'true or false'],
  metricsPort: ['65536', 'a port from 0 to 65535, or the path of a unix socket'],
  metricsHost: [' ', 'an address or a host name'],
  metricsMode: ['both', 'one of log, prometheus, legacy'],
  metricInterval: ['0', POSITIVE],
  metricsLocation: [' ', 'the path of a folder'],
  webhookSecret: [
    'whsec_dG9vc2hvcnQ=',
    'whsec_ and the base64 of 24 to 64 bytes; separate several with spaces or commas',
  ],
  spawnConcurrency: ['0', 'a whole number from 1 to 1024'],
  spares: ['65', 'a whole number from 0 to 64'],
  memoryBudget: ['101%', 'a size above 0 such as 512mb or 2gb, or a share such as 50%'],
  gpuMemoryBudget: ['0', 'a size above 0 such as 512mb or 2gb, or a share such as 50%'],
};

for (const name of OPTION_NAMES) {
  const { flag, secret } = OPTIONS[name];
  const [raw, allowed] = BAD[name];
  const shown = secret === true ? 'this value' : JSON.stringify(raw);
  test(`${flag} ${raw} is refused: option, value, what is allowed`, () => {
    const message = `${flag}: ${shown} is not allowed; give ${allowed}.`;
    assert.throws(() => parseOption(name, raw, flag), { code: 'SERVE_CONFIG', message });
  });
}

/** Values that the types of `serve()` allow, one of each kind. */
const GIVEN: {
  readonly [K in keyof Required<ProgramOptions>]: readonly Exclude<ProgramOptions[K], undefined>[];
} = {
  host: ['127.0.0.1'],
  port: [0, '8000', '/run/serve.sock'],
  tlsCert: ['cert.pem'],
  tlsKey: ['key.pem'],
  tlsFor: ['main', 'main,management', ['management', 'metrics']],
  readyFile: ['/run/serve.json'],
  page: [true, false],
  openapiAll: [true, false],
  apiKey: ['key', ['key', 'other']],
  apiKeyFile: ['keys.txt'],
  corsOrigin: ['*', ['https://a.example.com']],
  corsMethods: ['GET, POST', ['PUT']],
  corsHeaders: ['X-A, X-B', ['*']],
  name: ['digits-2_b.c'],
  modelStore: ['./models'],
  mmsConfig: ['./config.properties'],
  defaultWorkers: [2],
  defaultHandler: ['service:handle', 'src/model.ts'],
  withholdEnv: ['AWS_.*', ''],
  rawItems: [true, false],
  models: ['all', 'digits,cats=zoo/cats', ['digits', 'cats=zoo/cats']],
  allowedUrls: ['https://models.example.com/', ['http://store.internal:9000/', 'https://a.test']],
  ping: ['health', 'always-200'],
  mmsExceptionStatus: ['503', '500'],
  managementPort: [8081, '0', '/run/management.sock'],
  managementHost: ['::1'],
  managementKey: ['key', ['key', 'other']],
  managementInsecure: [true, false],
  unregisterTimeout: ['2m', 0],
  workers: [2],
  gpus: ['all', 0],
  workersPerGpu: [2],
  minWorkers: [0],
  maxWorkers: [2],
  idleTimeout: ['30s', 30],
  targetWait: ['1s', 30],
  standby: [1],
  python: ['/usr/bin/python3', 'python3.12'],
  providers: ['cpu', 'CUDA,cpu'],
  onCrashLoop: ['stay', 'exit'],
  spawnConcurrency: [2],
  spares: [2],
  memoryBudget: ['2gb', '50%', 1e9],
  gpuMemoryBudget: ['80%'],
  restartLimit: [0],
  queueSize: [0],
  queueBytes: ['1mb', 5],
  jobs: ['memory', 'local', 'local:/srv/jobs'],
  jobRetention: ['1h', 5],
  jobBytes: ['1mb', 5],
  queueTimeout: ['30s', 30],
  batchSize: [32],
  task: ['embedding'],
  concurrency: [8],
  maxBatchDelay: ['5ms', 5],
  runTimeout: ['30s', 30],
  websocketIdleTimeout: ['30s', 30],
  initTimeout: ['30s', 30],
  drainTimeout: ['30s', 0],
  drainLag: ['30s', 0],
  maxBody: ['1mb', 5],
  maxOutput: ['1mb', 5],
  compress: [true, false],
  unsentBytes: ['1mb', 5],
  headerTimeout: ['30s', 30],
  bodyTimeout: ['30s', 30],
  stallTimeout: ['30s', 30],
  watch: [true, false],
  exposeErrors: [true, false],
  accessLog: [true, false],
  logFormat: ['text', 'json'],
  logPrefix: ['none', 'potassium'],
  logLevel: ['debug', 'info', 'warn', 'error', 'silent'],
  logLocation: ['./logs'],
  metrics: [true, false],
  metricsPort: [8082, '0', '/run/metrics.sock'],
  metricsHost: ['::1'],
  metricsMode: ['log', 'prometheus', 'legacy'],
  metricInterval: ['10s', 1000],
  metricsLocation: ['/var/log/metrics'],
  webhookSecret: ['whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3'],
};

for (const name of OPTION_NAMES) {
  test(`${name} takes what the types of serve() allow`, () => {
    for (const raw of GIVEN[name]) assert.doesNotThrow(() => parseOption(name, raw, name));
  });
}

test('the types of `config` have exactly the options of a model', () => {
  const typed: Readonly<Record<keyof ConfigOptions, true>> = {
    initTimeout: true,
    restartLimit: true,
    queueSize: true,
    queueTimeout: true,
    rawItems: true,
    batchSize: true,
    maxBatchDelay: true,
    runTimeout: true,
    websocketIdleTimeout: true,
  };
  const models = OPTION_NAMES.filter((name) => OPTIONS[name].scope === 'model');
  assert.deepEqual(Object.keys(typed).sort(), models.sort());
});
