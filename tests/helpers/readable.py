"""Checks of a page as JavaScript that a browser evaluates: returns a list of problems."""

#: Text with too little contrast to its background: WCAG 2.2, 1.4.3.
FAINT = """() => {
  const channels = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const part = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const color = channels(getComputedStyle(one).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !one.getClientRects().length || one.closest(".unseen")) continue;
    const [ink, paper] = [light(channels(getComputedStyle(one).color)), light(behind(one))];
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) faint.push(`${one.tagName} ${one.className} ${contrast.toFixed(2)}`);
  }
  return [...new Set(faint)];
}"""
#: Interactive elements without an accessible name.
NAMELESS = """() =>
  [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea")]
  .filter((one) => !(one.textContent.trim() || one.labels?.length || one.getAttribute("aria-label")))
  .map((one) => one.outerHTML.slice(0, 120))"""
#: Cells whose words stand below each other, as a column has no room.
SQUEEZED = """() =>
  [...document.querySelectorAll("td, tbody th")].filter((one) => one.textContent.trim().length > 60
    && one.getClientRects().length && one.getBoundingClientRect().width < 140)
  .map((one) => `squeezed: ${one.textContent.trim().slice(0, 60)}`)"""
