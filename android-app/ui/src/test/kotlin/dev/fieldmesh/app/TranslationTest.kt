package dev.fieldmesh.app

import org.junit.Test
import org.w3c.dom.Element
import org.w3c.dom.NodeList
import java.io.File
import javax.xml.parsers.DocumentBuilderFactory
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** Every text in every language, with the same places for what is put in. */
class TranslationTest {
    @Test
    fun german() {
        val source = texts("values")
        val german = texts("values-de")
        assertTrue(source.size > 200, "${source.size} texts are read")
        assertEquals(emptySet(), source.keys - german.keys, "these are not translated")
        assertEquals(emptySet(), german.keys - source.keys, "nothing uses these")
        for ((name, text) in german) {
            assertTrue(text.isNotBlank(), name)
            assertEquals(places(source.getValue(name)), places(text), "$name: \"$text\"")
        }
    }

    /** The texts that are to be translated; those of a plural by their quantity. */
    private fun texts(folder: String): Map<String, String> {
        val file = File("src/main/res/$folder/strings.xml")
        val root = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(file).documentElement
        val strings = root.getElementsByTagName("string").elements()
            .filter { it.getAttribute("translatable") != "false" }
            .map { it.getAttribute("name") to it.textContent }
        val plurals = root.getElementsByTagName("plurals").elements().flatMap { plural ->
            plural.getElementsByTagName("item").elements().map {
                "${plural.getAttribute("name")}, ${it.getAttribute("quantity")}" to it.textContent
            }
        }
        return strings.plus(plurals).toMap()
    }

    private fun NodeList.elements() = List(length) { item(it) as Element }

    private fun places(text: String) = PLACE.findAll(text).map { it.value }.sorted().toList()

    private companion object {
        val PLACE = Regex("""%(?:\d+\$)?(?:\.\d+)?[a-z%]""")
    }
}
