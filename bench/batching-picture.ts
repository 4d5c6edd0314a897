/** `npm run build && npx tsc -b bench && node dist/bench/batching-picture.js`: the picture in docs/batching.md. */
import { delayPicture } from '../test/supervisor/dispatch/delay-picture.js';

console.log(delayPicture());
