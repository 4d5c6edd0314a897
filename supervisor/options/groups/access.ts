/** Who may call: keys, and pages of other origins. */
import { type KeyDigest, parseKeyFilePath, parseKeys } from '../api-key.js';
import { type AllowedOrigins, parseOrigins, parseTokens } from '../cors-origin.js';
import { serverOption, type SomeOptions } from '../option-spec.js';

export const ACCESS = {
  apiKey: serverOption<readonly KeyDigest[] | null>({
    flag: '--api-key',
    value: '<key>',
    help: 'Key that calls and /status must bring; several, separated by commas, hold at once. Flags can be seen in ps for a moment: better the environment or a file.',
    defaultText: 'no key needed',
    default: null,
    secret: true,
    parse: parseKeys,
  }),
  apiKeyFile: serverOption<string | null>({
    flag: '--api-key-file',
    value: '<path>',
    help: 'File of such keys, one per line, # begins a comment line; they hold besides those of --api-key. Read at the start only.',
    defaultText: 'no file',
    default: null,
    parse: parseKeyFilePath,
  }),
  corsOrigin: serverOption<AllowedOrigins | null>({
    flag: '--cors-origin',
    value: '<origin>',
    help: 'Origin whose pages may call from a browser, such as https://app.example.com; several, separated by commas, or * for all. Off: a page of another origin cannot read any reply.',
    defaultText: 'off',
    default: null,
    parse: parseOrigins,
  }),
  corsMethods: serverOption<readonly string[] | null>({
    flag: '--cors-methods',
    value: '<methods>',
    help: 'Methods that browsers are told their pages may use, separated by commas, whatever the path takes. Of no effect without --cors-origin.',
    defaultText: "the path's",
    default: null,
    parse: (raw) => parseTokens(raw, 'GET, POST').map((method) => method.toUpperCase()),
  }),
  corsHeaders: serverOption<readonly string[] | null>({
    flag: '--cors-headers',
    value: '<names>',
    help: 'Request headers that browsers are told their pages may send, separated by commas. Of no effect without --cors-origin.',
    defaultText: 'all that a page asks for',
    default: null,
    parse: (raw) => parseTokens(raw, 'Content-Type, X-Request-Id'),
  }),
} as const satisfies SomeOptions;
