/** Several models of one server: mistakes in how they are named. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { refusalOf, type Refused } from '../../helpers/refusals.js';
import { ROOT } from '../../helpers/server.js';
import { appFolder } from '../../worker/app-folder.js';

describe('a mistake is reported before anything starts, with its place', () => {
  const ECHO = `${ROOT}test/fixtures/apps/echoes.mjs`;
  const MISTAKES: readonly (readonly [
    what: string,
    given: Pick<Refused, 'app' | 'flags' | 'modelFlags'>,
    config: object,
    says: string | RegExp,
  ])[] = [
    [
      'two models with the same name',
      { modelFlags: [`a=${ECHO}`] },
      { models: { a: ECHO } },
      `banana.json: models.a and --model a=${ECHO} are two models with the same name; rename one.`,
    ],
    [
      'two models with the same name on the command line',
      { modelFlags: [`a=${ECHO}`, `a=${ECHO}`] },
      {},
      `--model a=${ECHO} and --model a=${ECHO} are two models with the same name; rename one.`,
    ],
    [
      'a model named as the file of the app is',
      { app: ECHO, modelFlags: [`echoes=${ECHO}`] },
      {},
      `--model echoes=${ECHO} and ${ECHO} (its file names it echoes; --name gives it another) are two models with the same name; rename one.`,
    ],
    [
      '--name without an app',
      { flags: { name: 'x' }, modelFlags: [`a=${ECHO}`] },
      {},
      '--name names the app that answers on /, but there is no such app: all models have names of their own.',
    ],
    [
      'a name with a slash',
      { modelFlags: [`a/b=${ECHO}`] },
      {},
      `--model a/b=${ECHO}: the name: "a/b" is not allowed; give up to 128 letters, digits, dots, underscores and hyphens, the first a letter, a digit or an underscore.`,
    ],
    [
      'a path without a name',
      { modelFlags: ['./app.mjs'] },
      {},
      '--model ./app.mjs: give a name and the path of an app, such as --model digits=./digits/app.ts.',
    ],
    [
      'a file that is not there',
      { modelFlags: ['a=./none.mjs'] },
      {},
      /^--model a=\.\/none\.mjs: \.\/none\.mjs: no such file\./,
    ],
    [
      'models that are neither an object nor names',
      {},
      { models: 7 },
      /^banana\.json: models: 7 is not allowed; give an object of models/,
    ],
    [
      'a model without an app',
      {},
      { models: { a: { workers: 2 } } },
      'banana.json: models.a.app: undefined is not allowed; give the path of the app.',
    ],
    [
      'a worker program in a file',
      {},
      { models: { a: { workerCommand: ['python3'] } } },
      /^banana\.json: models\.a\.app: undefined is not allowed/,
    ],
  ];
  for (const [what, given, config, says] of MISTAKES) {
    test(what, async (t) => {
      const said = await refusalOf({
        ...given,
        cwd: appFolder(t, { 'banana.json': JSON.stringify(config) }),
      });
      if (typeof says === 'string') assert.equal(said, says);
      else assert.match(said, says);
    });
  }
});
