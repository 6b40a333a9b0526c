package dev.fieldmesh.app

import org.junit.Test
import org.w3c.dom.Element
import org.w3c.dom.NodeList
import java.io.File
import javax.xml.parsers.DocumentBuilderFactory
import kotlin.test.assertEquals

/** Neither a cloud nor another phone gets what the app keeps: the node's key, and where people were. */
class BackupTest {
    private fun read(file: String): Element =
        DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(File("src/main/$file")).documentElement

    private fun NodeList.elements() = List(length) { item(it) }.filterIsInstance<Element>()

    private fun Element.excluded() =
        childNodes.elements().map { Triple(it.tagName, it.getAttribute("domain"), it.getAttribute("path")) }

    @Test
    fun `nothing is copied, before Android 12 and after`() {
        val app = read("AndroidManifest.xml").getElementsByTagName("application").elements().single()
        assertEquals("false", app.getAttribute("android:allowBackup"))
        assertEquals("@xml/transfer", app.getAttribute("android:dataExtractionRules"))
        assertEquals("@xml/backup", app.getAttribute("android:fullBackupContent"))
        val all = DOMAINS.map { Triple("exclude", it, ".") }
        val rules = read("res/xml/transfer.xml").childNodes.elements()
        assertEquals(listOf("cloud-backup", "device-transfer"), rules.map { it.tagName })
        for (rule in rules) assertEquals(all, rule.excluded(), rule.tagName)
        assertEquals(all, read("res/xml/backup.xml").excluded())
    }

    private companion object {
        /** All that Android's documentation of the two files has. */
        val DOMAINS = listOf(
            "root", "file", "database", "sharedpref", "external",
            "device_root", "device_file", "device_database", "device_sharedpref",
        )
    }
}
