/** Takes an image as a tensor or as nested lists, and answers its first number. */
export const inference = ({ image }) => ({ first: [image.data?.[0] ?? image[0][0][0][0]] });
