/** Picks a readable text colour for a background of any colour. Pure. */

/**
 * Black or white, whichever has the higher contrast: at least 4.5:1, as WCAG requires for text.
 *
 * @param color such as `#b3261e`
 */
export function textColorOn(color: string): '#000000' | '#ffffff' {
  // Both contrasts are the same where (1.05 / (l + 0.05)) = ((l + 0.05) / 0.05).
  return luminance(color) > Math.sqrt(1.05 * 0.05) - 0.05 ? '#000000' : '#ffffff';
}

/** Relative luminance as WCAG defines it, from 0 to 1. */
export function luminance(color: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
