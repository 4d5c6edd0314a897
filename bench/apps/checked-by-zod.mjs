/** A schema for the bodies of `small-json` and `big-json`. */
import { z } from 'zod';

const item = z.object({
  id: z.number(),
  label: z.string(),
  score: z.number(),
  tags: z.array(z.string()),
  box: z.array(z.number()),
});
export const input = z.object({ prompt: z.string().default(''), items: z.array(item).default([]) });

export const inference = ({ prompt, items }) => ({ chars: prompt.length, items: items.length });
