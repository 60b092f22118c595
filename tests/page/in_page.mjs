// Functions that run inside the page; each must stand alone.

/** Visible texts whose contrast with what is behind them is below WCAG AA. */
export function lowContrast() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const backdrop = (node) => {
    if (!node) return [255, 255, 255];
    const colour = rgba(getComputedStyle(node).backgroundColor);
    return colour[3] === 1 ? colour.slice(0, 3) : over(colour, backdrop(node.parentElement));
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || node.closest("script,style,.sr,.skip,:disabled") || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    const behind = backdrop(node);
    const [a, b] = [luminance(over(rgba(style.color), behind)), luminance(behind)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`${ratio.toFixed(2)} "${text.slice(0, 30)}" ${style.color}`);
  }
  return found;
}

/** Controls without a name a screen reader could say. */
export function namelessControls() {
  return [...document.querySelectorAll("input,select,textarea,button,a,[role=region],[role=img]")]
    .filter((node) => {
      const name =
        node.getAttribute("aria-label") ||
        [...(node.labels ?? [])].map((label) => label.textContent).join("") ||
        (/^(BUTTON|A)$/.test(node.tagName) ? node.textContent : "");
      return !name.trim();
    })
    .map((node) => node.outerHTML.slice(0, 80));
}

/** Visible controls that are smaller than a finger needs. */
export function smallTargets() {
  return [...document.querySelectorAll("a, button, input, select, textarea, summary")]
    .filter((node) => !node.matches(".skip") && node.checkVisibility())
    .map((node) => [node, node.getBoundingClientRect()])
    .filter(([, { width, height }]) => width < 44 || height < 44)
    .map(([node, { width, height }]) => `${width.toFixed(0)} x ${height.toFixed(0)} ${node.outerHTML.slice(0, 60)}`);
}

/** Elements that reach beyond the right edge of the window. */
export function overflowing() {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll("body *")]
    .filter((node) => node.getBoundingClientRect().right > width + 1)
    .map((node) => node.outerHTML.slice(0, 80));
}
