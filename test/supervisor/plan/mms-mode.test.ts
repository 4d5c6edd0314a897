/** Defaults of a server with a model store, with and without an app. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SECRET_PATTERN } from '../../../supervisor/options/value-forms.js';
import { servedAs } from '../../../supervisor/plan/gather-options.js';
import { resolveOptions } from '../../../supervisor/options/resolve.js';

/** Options, whether an app is named, whether a config of Multi Model Server was read. */
type Case = readonly [given: object, isAppNamed: boolean, hasMmsConfig?: boolean];
type Listens = readonly [host: string, port: number | string, managementPort: number | string | null];

const ROWS: readonly (readonly [given: Case, isMmsMode: boolean, listens: Listens])[] = [
  [[{}, false], false, ['0.0.0.0', 8000, null]],
  [[{}, true], false, ['0.0.0.0', 8000, null]],
  [[{ modelStore: 's' }, false], true, ['127.0.0.1', 8080, 8081]],
  [[{ models: 'all' }, false], true, ['127.0.0.1', 8080, 8081]],
  [[{ modelStore: 's' }, true], false, ['0.0.0.0', 8000, 8081]],
  [[{ managementPort: 9 }, false], false, ['0.0.0.0', 8000, 9]],
  [[{}, false, true], true, ['127.0.0.1', 8080, 8081]],
  [[{}, true, true], false, ['0.0.0.0', 8000, 8081]],
  [
    [{ modelStore: 's', host: '::', port: 80, managementPort: '/m.sock' }, false],
    true,
    ['::', 80, '/m.sock'],
  ],
];

for (const [[given, isAppNamed, hasMmsConfig = false], isMmsMode, listens] of ROWS) {
  const app = isAppNamed ? 'with an app' : 'without an app';
  const config = hasMmsConfig ? ' and a config of Multi Model Server' : '';
  test(`${JSON.stringify(given)} ${app}${config} listens on ${listens.join(', ')}`, () => {
    const source = { values: given as Record<string, unknown>, where: (name: string) => name };
    const served = servedAs(resolveOptions([source]), isAppNamed, hasMmsConfig);
    const { host, port, managementPort } = served.resolved.options;
    assert.deepEqual([served.isMmsMode, host, port, managementPort], [isMmsMode, ...listens]);
  });
}

const WITHHELD: readonly (readonly [what: string, given: Case, withheld: RegExp | null])[] = [
  ["other people's models: names that look like secrets", [{ modelStore: 's' }, false], SECRET_PATTERN],
  ['an app: none', [{}, true], null],
  ['an app beside a store: none', [{ modelStore: 's' }, true, true], null],
  ['an explicit option takes precedence', [{ modelStore: 's', withholdEnv: 'A_.*' }, false], /^(?:A_.*)$/],
  ['none, because the option is empty', [{ modelStore: 's', withholdEnv: '' }, false], null],
];

for (const [what, [given, isAppNamed, hasMmsConfig = false], withheld] of WITHHELD) {
  test(`variables withheld from workers: ${what}`, () => {
    const source = { values: given as Record<string, unknown>, where: (name: string) => name };
    const { resolved } = servedAs(resolveOptions([source]), isAppNamed, hasMmsConfig);
    assert.deepEqual(resolved.options.withholdEnv, withheld);
  });
}
