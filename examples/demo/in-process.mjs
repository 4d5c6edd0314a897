/** The model in the program's own thread. */
import { inference, init } from './model.mjs';
import { listen } from './server.mjs';

await init();
listen(inference);
