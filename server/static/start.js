// ---- Start ---------------------------------------------------------------------------------------
for (let i = 0; i < 8; ++i) {
  const key = make("span", { className: "d", textContent: String(i + 1) });
  key.style.setProperty("--h", hue(i));
  $("legend").append(key);
}
$("prompt").value = examples.recall();
recallFields();
setPanes(new Pane("Answer"));
writeCurl();
poll();
