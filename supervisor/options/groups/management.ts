/** Where models are managed while the server runs, and by whom. */
import { parseHost, parsePort } from '../address.js';
import { type KeyDigest, parseKeys } from '../api-key.js';
import { parseDurationMs, parseSwitch } from '../units.js';
import { DURATION, MINUTE, serverOption, type SomeOptions } from '../option-spec.js';

export const MANAGEMENT = {
  managementPort: serverOption<number | string | null>({
    flag: '--management-port',
    value: '<port>',
    help: 'TCP port of the management API, 0 for a free one, or the path of a unix socket (anything with a /). The port of the server itself puts both on one.',
    defaultText: 'off; with --model-store or --models 8081',
    default: null,
    parse: parsePort,
  }),
  managementHost: serverOption<string>({
    flag: '--management-host',
    value: '<address>',
    help: 'Address of the management API. This machine only, because who reaches it can run code; another one needs a key.',
    defaultText: '127.0.0.1',
    default: '127.0.0.1',
    parse: parseHost,
  }),
  managementKey: serverOption<readonly KeyDigest[] | null>({
    flag: '--management-key',
    value: '<key>',
    help: 'Key that the management API asks for, instead of those of --api-key; several, separated by commas, hold at once. Better given in the environment or a file.',
    defaultText: 'that of --api-key',
    default: null,
    secret: true,
    parse: parseKeys,
  }),
  managementInsecure: serverOption<boolean>({
    flag: '--management-insecure',
    value: null,
    help: 'Allows a management API without a key on an address that others reach. Off: whoever reaches it can run code here.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  unregisterTimeout: serverOption<number>({
    flag: '--unregister-timeout',
    value: DURATION,
    help: 'Longest time that the management API waits for the running calls and the workers of a model that is unregistered; then it answers 408, and the rest goes on. 0: it waits for nothing.',
    defaultText: '2m',
    default: 2 * MINUTE,
    parse: parseDurationMs,
  }),
} as const satisfies SomeOptions;
