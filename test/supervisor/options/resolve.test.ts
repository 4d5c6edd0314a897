import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { platformPaths, readEnvironment } from '../../../supervisor/options/environment.js';
import {
  resolveModelOptions,
  resolveOptions,
  withAppConfig,
  type ModelOptions,
  type OptionSource,
} from '../../../supervisor/options/resolve.js';
import {
  OPTIONS,
  OPTION_NAMES,
  envName,
  isDuration,
  type OptionName,
} from '../../../supervisor/options/table.js';

function source(label: string, values: Record<string, unknown>): OptionSource {
  return { values, where: (name) => `${label} ${name}` };
}

const NONE = source('nothing', {});

test('without a source every option has its default', () => {
  const { options, explicit } = resolveOptions([NONE]);
  for (const name of OPTION_NAMES) assert.equal(options[name], OPTIONS[name].default, name);
  assert.equal(explicit.size, 0);
});

describe('precedence: flag > environment > file > config > default', () => {
  const layers = ['flag', 'environment', 'file', 'config'] as const;
  /** Every subset of the sources. */
  for (let present = 0; present < 2 ** layers.length; present += 1) {
    const given = layers.filter((_, i) => (present & (1 << i)) !== 0);
    const winner = given[0] ?? 'default';
    test(`${winner} wins among ${given.join(', ') || 'no sources'}`, () => {
      const value = (layer: (typeof layers)[number]): Record<string, number> =>
        given.includes(layer) ? { queueSize: layers.indexOf(layer) } : {};
      const sources = layers.slice(0, 3).map((layer) => source(layer, value(layer)));
      const options = withAppConfig(resolveOptions(sources), value('config'), '/app.ts');
      assert.equal(options.queueSize, winner === 'default' ? 1024 : layers.indexOf(winner));
    });
  }
});

test('with watch the restart limit is 0, unless the operator or the app sets it', () => {
  const limit = (given: Record<string, unknown>, config = {}): number =>
    withAppConfig(resolveOptions([source('flag', { watch: true, ...given })]), config, '/app.ts')
      .restartLimit;
  assert.equal(limit({}), 0);
  assert.equal(limit({ watch: false }), 5);
  assert.equal(limit({ restartLimit: 2 }), 2);
  assert.equal(limit({}, { restartLimit: 3 }), 3);
});

test('sources are merged option by option, and an undefined value counts as not set', () => {
  const { options } = resolveOptions([
    source('flag', { port: '1', host: undefined }),
    source('env', { port: '2', host: 'b', queueSize: '3' }),
  ]);
  assert.deepEqual([options.port, options.host, options.queueSize], [1, 'b', 3]);
});

test('the result is frozen', () => {
  const resolved = resolveOptions([NONE]);
  assert.ok(Object.isFrozen(resolved.options));
  assert.ok(Object.isFrozen(withAppConfig(resolved, {}, '/app.ts')));
});

test('a bad value is refused even in a source of lower precedence', () => {
  const sources = [source('--port', { port: '80' }), source('BANANA_PORT', { port: 'x' })];
  assert.throws(() => resolveOptions(sources), {
    code: 'SERVE_CONFIG',
    message: /^BANANA_PORT port: "x" is not allowed/,
  });
});

test("options of scaling are the operator's: an app's config may not have them", () => {
  for (const name of ['minWorkers', 'maxWorkers', 'idleTimeout', 'targetWait', 'standby']) {
    assert.throws(() => withAppConfig(resolveOptions([NONE]), { [name]: 1 }, '/app.ts'), {
      code: 'SERVE_CONFIG',
      message: new RegExp(`^/app\\.ts: config\\.${name}: this option belongs to the operator of the server`),
    });
  }
});

const REFUSED: readonly (readonly [values: Record<string, unknown>, message: RegExp])[] = [
  [
    { port: '99999' },
    /^in port: "99999" is not allowed; give a port from 0 to 65535, or the path of a unix socket\.$/,
  ],
  [{ port: 'tcp://1.2.3.4:80' }, /^in port: "tcp:/],
  [{ runTimeout: '30' }, /^in runTimeout: "30" is not allowed; give a duration with a unit, such as 500ms/],
  [{ runTimeout: '0s' }, /give a duration above 0/],
  [{ gpus: 'some' }, /give all, none, or a comma-separated list/],
  [{ gpus: '0,,2' }, /give all, none/],
  [{ host: ' ' }, /give an address or a host name/],
  [{ prot: 1 }, /^in prot: there is no such option\. Did you mean port\?$/],
  [{ 'run-timeout': '3s' }, /^in run-timeout: there is no such option\. Did you mean runTimeout\?$/],
  [{ zzz: 1 }, /^in zzz: there is no such option\. Known options: host, port, /],
  [{ toString: 1 }, /^in toString: there is no such option/],
  [{ __proto__x: 1 }, /there is no such option/],
  [{ workers: 2, workersPerGpu: 2 }, /exclude each other: .*without GPUs.*on each GPU.* Give one/],
  [
    { workers: 2, gpus: 'all' },
    /--workers is for machines without GPUs; with --gpus, give --workers-per-gpu/,
  ],
  [{ workers: 2, minWorkers: 0 }, /--workers and --min-workers exclude each other: .*Give --max-workers/],
  [{ workers: 2, maxWorkers: 3 }, /--workers and --max-workers exclude each other/],
  [{ workers: 2, idleTimeout: '1s' }, /--workers and --idle-timeout exclude each other/],
  [{ minWorkers: 3, maxWorkers: 2 }, /--max-workers \(2\) cannot be less than --min-workers \(3\)/],
];

for (const [values, message] of REFUSED) {
  test(`${JSON.stringify(values)} is refused with a remedy`, () => {
    assert.throws(() => resolveOptions([source('in', values)]), { code: 'SERVE_CONFIG', message });
  });
}

describe('a duration without a unit', () => {
  const durations = OPTION_NAMES.filter((name) => isDuration(name));

  for (const name of durations) {
    test(`${name}: 30 in a file is refused with a correct example`, () => {
      const message = `banana.json: ${name}: 30 has no unit; write "30s" for seconds or "30ms" for milliseconds.`;
      const file = { values: { [name]: 30 }, where: (key: string) => `banana.json: ${key}` };
      assert.throws(() => resolveOptions([file]), { code: 'SERVE_CONFIG', message });
    });

    test(`${name}: 30 from a program is 30 ms`, () => {
      const program: OptionSource = { ...source('serve', { [name]: 30 }), numbersAreMs: true };
      assert.equal(resolveOptions([program]).options[name], 30);
    });
  }

  test('is allowed for 0', () => {
    assert.equal(resolveOptions([source('in', { drainLag: 0 })]).options.drainLag, 0);
  });

  test("is refused in the app's config, with its file", () => {
    assert.throws(() => withAppConfig(resolveOptions([NONE]), { runTimeout: 30 }, '/app.ts'), {
      code: 'SERVE_CONFIG',
      message:
        '/app.ts: config.runTimeout: 30 has no unit; write "30s" for seconds or "30ms" for milliseconds.',
    });
  });
});

const GPU_LISTS = [
  'all',
  'none',
  '0',
  '0,2',
  '0, 2',
  'GPU-5d5ba0d6',
  'MIG-c7384736',
  'GPU-a/1/2',
  '3,GPU-5d5ba0d6-aaaa',
];
for (const list of GPU_LISTS) {
  test(`--gpus ${list} is kept unchanged`, () => {
    assert.equal(resolveOptions([source('in', { gpus: list })]).options.gpus, list);
  });
}

test('--workers may be given with --gpus none', () => {
  assert.equal(resolveOptions([source('in', { workers: 2, gpus: 'none' })]).options.workers, 2);
});

describe("an app's config", () => {
  const resolved = resolveOptions([NONE]);

  for (const name of OPTION_NAMES) {
    const { scope, flag } = OPTIONS[name];
    if (scope === 'model') continue;
    test(`may not set ${name}; the error names where to set it`, () => {
      const whose =
        scope === 'server' ? 'the server, not to a model' : 'the operator of the server, not to the app';
      const message = `/app.ts: config.${name}: this option belongs to ${whose}. Set ${flag} or ${envName(name)} instead.`;
      assert.throws(() => withAppConfig(resolved, { [name]: 1 }, '/app.ts'), {
        code: 'SERVE_CONFIG',
        message,
      });
    });
  }

  test('may set every option of a model', () => {
    const config = {
      queueSize: 1,
      queueTimeout: '3s',
      rawItems: true,
      batchSize: 7,
      maxBatchDelay: '8ms',
      runTimeout: '4s',
      initTimeout: '5s',
      websocketIdleTimeout: '6s',
      restartLimit: 6,
    };
    const options = withAppConfig(resolved, config, '/app.ts');
    const isModels = (name: OptionName): name is keyof typeof config => OPTIONS[name].scope === 'model';
    const models = OPTION_NAMES.filter(isModels);
    assert.deepEqual(Object.keys(config).sort(), models.sort());
    assert.deepEqual(
      models.map((name) => [name, options[name]]),
      [
        ['batchSize', 7],
        ['initTimeout', 5000],
        ['maxBatchDelay', 8],
        ['queueSize', 1],
        ['queueTimeout', 3000],
        ['rawItems', true],
        ['restartLimit', 6],
        ['runTimeout', 4000],
        ['websocketIdleTimeout', 6000],
      ],
    );
  });

  test('is refused with file, key, value and allowed values', () => {
    const bad = (config: Record<string, unknown>) => () => withAppConfig(resolved, config, '/app.ts');
    assert.throws(bad({ runTimeout: 'soon' }), {
      message: /^\/app\.ts: config\.runTimeout: "soon" is not allowed; give a duration/,
    });
    assert.throws(bad({ runTimout: '3s' }), {
      message: /^\/app\.ts: config\.runTimout: there is no such option\. Did you mean runTimeout\?/,
    });
  });

  test('is checked even if the operator set the option', () => {
    const explicit = resolveOptions([source('in', { runTimeout: '1s' })]);
    assert.throws(() => withAppConfig(explicit, { runTimeout: 'soon' }, '/app.ts'), { code: 'SERVE_CONFIG' });
  });
});

describe('the options of one of several models', () => {
  const of = (server: Record<string, unknown>, own: Record<string, unknown>): ModelOptions =>
    resolveModelOptions(
      resolveOptions([source('flag', server)]),
      { values: own, where: (name) => `banana.json: models.digits.${name}` },
      'banana.json: models.digits',
    ).options;

  test('take precedence over those of the server, whose other options apply to it too', () => {
    const options = of({ runTimeout: '1s', queueSize: 5 }, { runTimeout: '2s' });
    assert.deepEqual([options.runTimeout, options.queueSize], [2000, 5]);
  });

  test("take precedence over its app's config, as those of the server do", () => {
    const server = resolveOptions([source('flag', { queueSize: 5 })]);
    const own: OptionSource = { values: { runTimeout: '2s' }, where: (name) => name };
    const config = { runTimeout: '3s', queueSize: 6, queueTimeout: '7s' };
    const options = withAppConfig(resolveModelOptions(server, own, 'digits'), config, '/app.ts');
    assert.deepEqual([options.runTimeout, options.queueSize, options.queueTimeout], [2000, 5, 7000]);
  });

  type Values = Record<string, unknown>;
  const WISHES: readonly (readonly [
    server: Values,
    own: Values,
    workers: unknown,
    gpus: unknown,
    perGpu: unknown,
  ])[] = [
    [{ workers: 4 }, {}, 4, null, null],
    [{ workers: 4 }, { workers: 2 }, 2, null, null],
    [{ workers: 4 }, { workersPerGpu: 2 }, null, null, 2],
    [{ workers: 4 }, { gpus: '0' }, null, '0', null],
    [{ workers: 4 }, { gpus: 'none' }, 4, 'none', null],
    [{ gpus: '0,1', workersPerGpu: 2 }, { workers: 3 }, 3, null, null],
    [{ gpus: 'none' }, { workers: 3 }, 3, 'none', null],
    [{ gpus: '0,1', workersPerGpu: 2 }, { gpus: '1' }, null, '1', 2],
  ];
  for (const [server, own, workers, gpus, workersPerGpu] of WISHES) {
    test(`about devices: ${JSON.stringify(own)} keeps of the server's ${JSON.stringify(server)} only what fits`, () => {
      const options = of(server, own);
      assert.deepEqual(
        [options.workers, options.gpus, options.workersPerGpu],
        [workers, gpus, workersPerGpu],
      );
    });
  }

  const SCALES: readonly (readonly [server: Values, own: Values, kept: Values])[] = [
    [{ idleTimeout: '9s' }, {}, { workers: null, minWorkers: null, maxWorkers: null, idleTimeout: 9000 }],
    [
      { workers: 4 },
      { minWorkers: 0 },
      { workers: null, minWorkers: 0, maxWorkers: null, idleTimeout: null },
    ],
    [
      { minWorkers: 0, maxWorkers: 3 },
      { maxWorkers: 5 },
      { workers: null, minWorkers: 0, maxWorkers: 5, idleTimeout: null },
    ],
    [
      { minWorkers: 0, maxWorkers: 3, idleTimeout: '9s' },
      { workers: 2 },
      { workers: 2, minWorkers: null, maxWorkers: null, idleTimeout: null },
    ],
  ];
  for (const [server, own, kept] of SCALES) {
    test(`about scaling: ${JSON.stringify(own)} keeps of the server's ${JSON.stringify(server)} only what fits`, () => {
      const { workers, minWorkers, maxWorkers, idleTimeout } = of(server, own);
      assert.deepEqual({ workers, minWorkers, maxWorkers, idleTimeout }, kept);
    });
  }

  test('are refused with their source if they exclude each other', () => {
    assert.throws(() => of({}, { workers: 1, workersPerGpu: 1 }), {
      code: 'SERVE_CONFIG',
      message: /^banana\.json: models\.digits: --workers and --workers-per-gpu exclude each other/,
    });
  });

  test('may not be those of the server', () => {
    assert.throws(() => of({}, { port: 80 }), {
      code: 'SERVE_CONFIG',
      message:
        'banana.json: models.digits.port: this option belongs to the server, not to a model. Set --port or BANANA_PORT instead.',
    });
  });

  test('are refused if mistyped, with a list of those that a model takes', () => {
    assert.throws(() => of({}, { worker: 2 }), { message: /Did you mean workers\?$/ });
    assert.throws(() => of({}, { hots: 2 }), { message: /Known options: (?!.*\bhost\b).*\bworkers\b/ });
  });
});

describe('the environment', () => {
  const read = (env: Record<string, string>): [values: object, warnings: string[]] => {
    const {
      source: { values },
      warnings,
    } = readEnvironment(env);
    return [values, warnings];
  };

  test('every option has a variable, and errors name it', () => {
    const env = Object.fromEntries(OPTION_NAMES.map((name) => [envName(name), 'value']));
    const {
      source: { values, where },
      warnings,
    } = readEnvironment(env);
    assert.deepEqual(values, Object.fromEntries(OPTION_NAMES.map((name) => [name, 'value'])));
    assert.deepEqual(warnings, []);
    assert.equal(where('runTimeout'), 'BANANA_RUN_TIMEOUT');
  });

  test("PORT counts, and BANANA_PORT takes precedence, and before it Vertex AI's", () => {
    assert.deepEqual(read({ PORT: '1' })[0], { port: '1' });
    assert.deepEqual(read({ PORT: '1', BANANA_PORT: '2' })[0], { port: '2' });
    assert.equal(readEnvironment({ PORT: '1' }).source.where('port'), 'PORT');
    assert.deepEqual(read({ PORT: '1', BANANA_PORT: '2', AIP_HTTP_PORT: '3' })[0], { port: '3' });
  });

  test('Vertex AI names paths, which begin with a slash', () => {
    assert.deepEqual(platformPaths({ AIP_PREDICT_ROUTE: '' }), { health: null, predict: null });
    const named = { AIP_HEALTH_ROUTE: '/h', AIP_PREDICT_ROUTE: '/v1/endpoints/1/deployedModels/2:predict' };
    const paths = { health: '/h', predict: named.AIP_PREDICT_ROUTE };
    assert.deepEqual(platformPaths(named), paths);
    for (const wrong of ['h', '/h?a=1', '/a b'])
      assert.throws(() => platformPaths({ AIP_HEALTH_ROUTE: wrong }), { message: /^AIP_HEALTH_ROUTE: "/ });
  });

  test('an empty variable counts as not set', () =>
    assert.deepEqual(read({ BANANA_PORT: '', PORT: '' }), [{}, []]));

  test('variables that Kubernetes injects for a service called banana are ignored with one warning', () => {
    const injected = {
      BANANA_PORT: 'tcp://10.0.0.1:8000',
      BANANA_SERVICE_HOST: '10.0.0.1',
      BANANA_SERVICE_PORT: '8000',
      BANANA_SERVICE_PORT_HTTP: '8000',
      BANANA_PORT_8000_TCP: 'tcp://10.0.0.1:8000',
      BANANA_PORT_8000_TCP_PROTO: 'tcp',
      BANANA_PORT_8000_TCP_PORT: '8000',
      BANANA_PORT_8000_TCP_ADDR: '10.0.0.1',
    };
    const [values, warnings] = read({ ...injected, PORT: '9000' });
    assert.deepEqual(values, { port: '9000' }, 'PORT still counts');
    assert.deepEqual(warnings, [
      'BANANA_PORT=tcp://10.0.0.1:8000 looks like a variable that Kubernetes sets, and is ignored',
    ]);
  });

  test('a mistyped variable causes a warning, an unrelated one does not', () => {
    const [, warnings] = read({
      BANANA_PROT: '1',
      BANANA_RUN_TIMOUT: '1s',
      BANANA_MODEL_KEY: 'x',
      BANANA_SERVER: 'x',
      HOST: 'x',
    });
    assert.deepEqual(warnings, [
      'BANANA_PROT is not an option of banana-serve; did you mean BANANA_PORT?',
      'BANANA_RUN_TIMOUT is not an option of banana-serve; did you mean BANANA_RUN_TIMEOUT?',
    ]);
  });
});
