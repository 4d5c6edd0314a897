/** `config.properties` among the other sources of options: the order of the sources, and mistakes that end the start. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { planServer } from '../../../supervisor/plan/plan-server.js';
import type { ServerPlan } from '../../../supervisor/plan/plan-server.js';
import { tableRows } from '../../helpers/doc-page.js';
import { appFolder } from '../../worker/app-folder.js';

interface Given {
  readonly files: Readonly<Record<string, string>>;
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
}

/** Plans the server that the command would start in a folder with these files. */
async function planned(t: TestContext, { files, flags = {}, env = {} }: Given): Promise<ServerPlan> {
  const cwd = appFolder(t, { 'models/echo.mjs': 'export const handle = (data) => data;', ...files });
  Object.assign(process.env, env);
  t.after(() => Object.keys(env).forEach((name) => delete process.env[name]));
  const where = (name: string): string =>
    `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const plan = await planServer({ cwd }, { flags: { values: { gpus: 'none', ...flags }, where } });
  t.after(() => plan.store.close());
  return plan;
}

const NO_KEY =
  'the management API needs a key there, because anyone who reaches it can run code here. Give it a key (--management-key, or --api-key for all), keep it to this machine (--management-host 127.0.0.1 with a port of its own, or a unix socket), or run it without a key (--management-insecure, BANANA_MANAGEMENT_INSECURE=1).';

const MISTAKES: readonly (readonly [
  what: string,
  config: string,
  flags: Readonly<Record<string, unknown>>,
  message: string,
])[] = [
  [
    'an open management API',
    '\nmanagement_address=http://0.0.0.0:8081',
    {},
    `config.properties line 2: management_address: 0.0.0.0 is an address that other machines can reach; ${NO_KEY}`,
  ],
  [
    'a variable that is not set',
    'model_store=$$NOT_SET_ANYWHERE$$/models',
    {},
    'config.properties line 1: model_store: Invalid Environment Variable NOT_SET_ANYWHERE: "$$NOT_SET_ANYWHERE$$/models" uses it, but it is not set. Set it, or write its value here.',
  ],
  [
    'an address without a scheme',
    'inference_address=0.0.0.0:8080',
    {},
    'config.properties line 1: inference_address: "0.0.0.0:8080" is not allowed; give http://host:port or https://host:port, with a port up to 65535 and no path, or unix:/path of a socket.',
  ],
  [
    'one address for calls and management, without a key',
    'inference_address=http://127.0.0.1:8080\nmanagement_address=http://127.0.0.1:8080',
    {},
    `config.properties line 2: management_address: 8080 is the address of the server itself; ${NO_KEY}`,
  ],
  [
    'https without a certificate',
    '\nmanagement_address=https://127.0.0.1:0',
    {},
    'config.properties line 2: management_address: TLS needs a certificate and its key; give --tls-cert and --tls-key (certificate_file and private_key_file in config.properties). The server does not create one.',
  ],
  [
    'a certificate that is not there',
    'certificate_file=cert.pem\nprivate_key_file=key.pem\nmanagement_address=https://127.0.0.1',
    {},
    "config.properties line 1: certificate_file cert.pem: it cannot be read (ENOENT: no such file or directory, open 'FOLDER/cert.pem'); give the path of a PEM file.",
  ],
  [
    'https for one of two that are one address',
    'inference_address=http://127.0.0.1:8080\nmanagement_address=https://127.0.0.1:8080\ncertificate_file=c.pem\nprivate_key_file=k.pem',
    { managementInsecure: true },
    'config.properties line 2: management_address: there is no management listener with an address of its own; leave it out, or give it a port.',
  ],
  [
    'models without a store',
    'load_models=cats.mar',
    {},
    'config.properties line 1: load_models names models of a store, but no store is given: give its folder as --model-store.',
  ],
  [
    'a mistyped folder of models',
    'model_store=./modles',
    {},
    'config.properties line 1: model_store ./modles: no such folder. Did you mean models?',
  ],
  [
    'a file that is not there',
    '',
    { mmsConfig: 'conf.properties' },
    '--mms-config conf.properties: no such file. Did you mean config.properties?',
  ],
];

describe('a mistake in a config.properties is refused with its line and a remedy', () => {
  for (const [what, config, flags, message] of MISTAKES)
    test(what, async (t) => {
      const refused = planned(t, { files: { 'config.properties': config }, flags });
      await assert.rejects(refused, (thrown: { code: string; message: string }) => {
        const said = thrown.message.replace(/'\S*\/cert\.pem'/, "'FOLDER/cert.pem'");
        assert.deepEqual([thrown.code, said], ['SERVE_CONFIG', message]);
        return true;
      });
    });
});

/** Values of `withholdEnv` of a server with a store. */
const WITHHOLDINGS: readonly (readonly [what: string, given: Partial<Given>, line: string, RegExp | null])[] =
  [
    ["--withhold-env '' withholds none", { flags: { withholdEnv: '' } }, '', null],
    ['blacklist_env_vars= withholds none', {}, 'blacklist_env_vars=', null],
    ['a pattern takes the place of the names of secrets', {}, 'blacklist_env_vars=MINE_.*', /^(?:MINE_.*)$/],
    ['BANANA_WITHHOLD_ENV=- matches no name', { env: { BANANA_WITHHOLD_ENV: '-' } }, '', /^(?:-)$/],
  ];

describe('variables that are withheld from workers of a store', () => {
  for (const [what, given, line, withheld] of WITHHOLDINGS)
    test(what, async (t) => {
      const files = { 'config.properties': `model_store=models\nload_models=echo.mjs\n${line}` };
      const { resolved } = await planned(t, { files, ...given });
      assert.deepEqual(resolved.options.withholdEnv, withheld);
    });
});

/** The sources of the table in the docs, each with the size of the queue in its example. */
const SOURCES = tableRows('config-properties.md', 'Which source wins', 'source').map((row) => {
  const text = row['such as'] ?? '';
  return { text, size: Number(/\d+/.exec(text)?.[0]) };
});

function variable(text: string): Partial<Given> {
  const [name = '', value = ''] = text.split('=');
  return { env: { [name]: value } };
}

/** Gives the example of each source, the strongest first; the app's own config, the last, is known to workers only. */
const GIVE: readonly ((text: string) => Partial<Given>)[] = [
  variable,
  (text) => ({ flags: { queueSize: text.split(' ')[1] } }),
  variable,
  (text) => ({
    files: { 'config.properties': `enable_envvars_config=true\n${text}` },
    flags: { mmsConfig: 'config.properties' },
  }),
  (text) => ({ files: { 'banana.json': `{ ${text} }` } }),
  () => ({}),
];

describe('the sources of an option, in the order of the docs', () => {
  assert.equal(SOURCES.length, GIVE.length);
  for (const [first, { text, size }] of SOURCES.slice(0, -1).entries())
    test(`${text} goes before all that come after it`, async (t) => {
      const given = SOURCES.flatMap(({ text: example }, i) => (i < first ? [] : [GIVE[i]?.(example) ?? {}]));
      const files = Object.assign({ 'app.mjs': '' }, ...given.map((one) => one.files)) as Given['files'];
      const flags = Object.assign({}, ...given.map((one) => one.flags)) as Record<string, unknown>;
      const env = Object.assign({}, ...given.map((one) => one.env)) as Record<string, string>;
      const { resolved } = await planned(t, { files, flags, env });
      assert.equal(resolved.options.queueSize, size);
    });
});
