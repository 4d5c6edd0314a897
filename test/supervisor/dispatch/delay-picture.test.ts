/** The picture in docs/batching.md is what the simulator gives. */
import { holdsSection } from '../../helpers/doc-page.js';
import { delayPicture } from './delay-picture.js';

holdsSection('batching.md', 'picture', () => `\n\`\`\`text\n${delayPicture()}\`\`\`\n\n`);
