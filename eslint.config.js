import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/**
 * The rooms of the supervisor, from the entry down: each may import those below it and none above. News travels back up
 * through listeners that are handed down.
 */
export const ROOMS = [
  'cli.ts',
  'model-archiver.ts',
  'test-server.ts',
  'serve.ts',
  'new',
  'archive',
  'server',
  'metrics',
  'http/handler.ts',
  'http/websocket',
  'http/dialects',
  'http/call',
  'http/socket',
  'models',
  'slots',
  'processes',
  'calls',
  'store',
  'runtimes',
  'watch',
  'jobs',
  'webhooks',
  'dispatch',
  'observe',
  'options',
  'machine',
  'memory',
  'version.ts',
];

/** How a relative import names the room, from inside `http/` or from elsewhere. */
function importOf(room) {
  const path = room.endsWith('.ts') ? room.replace(/\.ts$/, String.raw`\.js$`) : `${room}/`;
  return String.raw`^(?:\.{1,2}/)+${path.replace(/^http\//, '(?:http/)?')}`;
}

/** Refuses the imports that no room may have of those above it, and those of `patterns`. */
function restrict(files, room, patterns = []) {
  const above = ROOMS.slice(0, ROOMS.indexOf(room)).map((one) => ({
    regex: importOf(one),
    message: `${room} stands below ${one} (ROOMS in eslint.config.js).`,
  }));
  return { files, rules: { 'no-restricted-imports': ['error', { patterns: [...above, ...patterns] }] } };
}

const oneWay = ROOMS.slice(1).map((room) =>
  restrict([room.endsWith('.ts') ? `supervisor/${room}` : `supervisor/${room}/**`], room),
);

const DIALECTS = 'supervisor/http/dialects';
const message = 'No dialect imports another; what several need stands in http/call or http/socket.';

/** Dialects of one file, and those of a folder, import nothing beside them but what a dialect is. */
const apart = [
  restrict([`${DIALECTS}/!(index).ts`], 'http/dialects', [
    { regex: String.raw`^\./(?!dialect\.js$)`, message },
  ]),
  restrict([`${DIALECTS}/*/**`], 'http/dialects', [
    { regex: String.raw`^\.\./(?!\.\./|dialect\.js$)`, message },
  ]),
];

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', 'test/fixtures/**', '**/*.js', '**/*.mjs', '**/*.cjs'] },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
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
  ...oneWay,
  ...apart,
  { files: ['bench/**/*.ts', 'examples/**/*.ts'], rules: { 'no-console': 'off' } },
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
