// What the search shows of a page is from its text: not from the contents and the buttons around it, as the theme has them.
{
  const { htmlToText } = Search;

  Search.htmlToText = (html, anchor) => {
    const article = new DOMParser().parseFromString(html, "text/html").querySelector(".bd-article");
    return htmlToText(article ? `<div role="main">${article.outerHTML}</div>` : html, anchor);
  };
}
