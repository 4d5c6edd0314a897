/** Options for development. */
import { parseSwitch } from '../units.js';
import { serverOption, type SomeOptions } from '../option-spec.js';

export const DEVELOPMENT = {
  exposeErrors: serverOption<boolean>({
    flag: '--expose-errors',
    value: null,
    help: "Answer with the stack, as text, when the app throws: for development. Off: a stack shows your code, and may contain a caller's data.",
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  watch: serverOption<boolean>({
    flag: '--watch',
    value: null,
    help: "Start the workers again, init included, whenever a code or JSON file in the app's folder changes: for development.",
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
} as const satisfies SomeOptions;
