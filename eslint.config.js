import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/**
 * The rooms of the supervisor, from the entry down: each may import those below it and none above. News travels back up
 * through listeners that are handed down.
 */
export const ROOMS = [
  'cli.ts',
  'model-archiver.ts',
  'program.ts',
  'new',
  'archive',
  'optimize',
  'demo',
  'command',
  'serve.ts',
  'embed',
  'server',
  'server/host',
  'server/models',
  'page',
  'status',
  'plan',
  'metrics',
  'http/handler.ts',
  'http/websocket',
  'http/dialects',
  'http/openapi',
  'http/call',
  'http/answer',
  'http/request',
  'http/access',
  'http/json',
  'http/socket',
  'functions',
  'models',
  'slots',
  'processes',
  'calls',
  'store',
  'runtimes',
  'watch',
  'jobs',
  'webhooks',
  'scaling',
  'budget',
  'dispatch',
  'observe',
  'options',
  'machine',
  'memory',
  'version.ts',
];

/** The rooms of the worker in TypeScript, in the same order of who may import whom. */
export const WORKER_ROOMS = [
  'main.ts',
  'load',
  'run',
  'adapters',
  'api/store',
  'reply',
  'formats',
  'values',
  'report',
  'failures',
  'api',
  'process',
];

/** The rooms of the protocol: the wire may use texts, not the other way round. */
export const PROTOCOL_ROOMS = ['wire', 'values', 'text'];

/** How a relative import from a file of the room `from` names another room. */
function importOf(room, from) {
  if (from.startsWith(`${room}/`)) return String.raw`^\.\./[\w-]+\.js$`; // the files of the folder that it lies in
  const path = room.endsWith('.ts') ? room.replace(/\.ts$/, String.raw`\.js$`) : `${room}/`;
  const [top, ...rest] = path.split('/');
  const isNear = rest.join('/') !== '' && from.split('/')[0] === top;
  return String.raw`^(?:\.{1,2}/)+${isNear ? `(?:${top}/)?${rest.join('/')}` : path}`;
}

/** Refuses the imports that no room may have of those above it, and those of `patterns`. */
function restrict(files, room, rooms = ROOMS, patterns = [], ignores = []) {
  const above = rooms.slice(0, rooms.indexOf(room)).map((one) => ({
    regex: importOf(one, room),
    message: `${room} stands below ${one} (the rooms in eslint.config.js).`,
  }));
  return {
    files,
    ignores,
    rules: { 'no-restricted-imports': ['error', { patterns: [...above, ...patterns] }] },
  };
}

/** One rule for each room of a folder; a room that lies in another has its own. */
function oneWay(folder, rooms) {
  return rooms.map((room) => {
    const files = [`${folder}/${room}${room.endsWith('.ts') ? '' : '/**'}`];
    const inner = rooms
      .filter((other) => other.startsWith(`${room}/`))
      .map((other) => `${folder}/${other}/**`);
    return restrict(files, room, rooms, [], inner);
  });
}

const DIALECTS = 'supervisor/http/dialects';
const message = 'No dialect imports another; what several need stands in the rooms below http/dialects.';

/** Two files list dialects. Dialects of one file, and those of a folder, import nothing beside them but what a dialect is, and their paths as JSON. */
const apart = [
  restrict([`${DIALECTS}/!(index|job-posts).ts`], 'http/dialects', ROOMS, [
    { regex: String.raw`^\./(?!dialect\.js$|\w+\.json$)`, message },
  ]),
  restrict([`${DIALECTS}/*/**`], 'http/dialects', ROOMS, [
    { regex: String.raw`^\.\./(?!\.\./|dialect\.js$)`, message },
  ]),
];

/** Beginnings of a docstring that make a riddle of it: it should state what the thing is or does. */
const RIDDLE = /^\*[\s*]*(?:@\w+\s+)?(What|How|Where|Which|Those|Of|Who)\b/;

/** Refuses docstrings and file headers that begin with such a word. */
const docstrings = {
  create: (context) => ({
    Program: () => {
      for (const comment of context.sourceCode.getAllComments()) {
        const [, word] = RIDDLE.exec(comment.value) ?? [];
        if (word === undefined) continue;
        const message = `A docstring says what the thing is or does; it does not begin with "${word}".`;
        context.report({ loc: comment.loc, message });
      }
    },
  }),
};

/** The page runs in browsers: of the server it knows only the types of its data. */
const pageAlone = restrict(['supervisor/page/**'], 'page', ROOMS, [
  {
    regex: String.raw`^(?:\.\./){2,}(?!status/live-types\.js$)`,
    message: 'The page imports nothing of the server but status/live-types.ts.',
  },
]);

/** The host of models serves calls of any origin. */
const hostAlone = restrict(['supervisor/server/host/**'], 'server/host', ROOMS, [
  {
    regex: String.raw`^(?:\.\./){2}http/`,
    message: 'The host of models knows no HTTP; a server hands in what does.',
  },
]);

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', 'test/fixtures/**', '**/*.js', '**/*.mjs', '**/*.cjs'] },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { house: { rules: { docstrings } } },
    rules: {
      'house/docstrings': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      // Listeners here are objects of closures; none has a `this` to lose.
      '@typescript-eslint/unbound-method': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/only-throw-error': 'error',
      'no-console': 'error',
      eqeqeq: 'error',
    },
  },
  ...oneWay('supervisor', ROOMS),
  ...oneWay('worker', WORKER_ROOMS),
  ...oneWay('protocol', PROTOCOL_ROOMS),
  ...apart,
  pageAlone,
  hostAlone,
  { files: ['bench/**/*.ts', 'examples/**/*.ts'], rules: { 'no-console': 'off' } },
  { files: ['worker/report/print-attribution.ts'], rules: { 'no-console': 'off' } }, // it wraps the console
  {
    // node:test's `test()` returns a promise that the runner itself awaits.
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', package: 'node:test', name: ['test', 'describe', 'it'] },
          ],
        },
      ],
    },
  },
);
