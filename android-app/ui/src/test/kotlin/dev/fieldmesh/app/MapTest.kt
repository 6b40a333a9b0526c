package dev.fieldmesh.app

import android.app.Activity
import android.content.Intent
import android.net.Uri
import android.os.Looper
import android.view.View
import android.widget.TextView
import dev.fieldmesh.core.Maps
import dev.fieldmesh.core.map.MapFault
import dev.fieldmesh.device.MapState
import dev.fieldmesh.device.SharedFiles
import dev.fieldmesh.device.StreetMap
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runBlocking
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import java.io.File
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertNotEquals
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** The map under the track, from the choice of a file to the end of the process. */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class, qualifiers = "w411dp-h891dp-port-420dpi")
class MapTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp

    /** A file that another app has; the app's own provider stands in for that. */
    private fun document(name: String, from: File): Uri {
        val file = File(SharedFiles.folder(app).apply { mkdirs() }, name)
        from.copyTo(file, overwrite = true)
        return Uri.parse("content://${app.packageName}.files/$name")
    }

    private fun opened() = StreetMap(app.contentResolver, app.preferences, Dispatchers.Unconfined).also {
        runBlocking { it.open() }
    }.state.value

    private fun idle() = shadowOf(Looper.getMainLooper()).idle()

    private val kept get() = app.contentResolver.persistedUriPermissions.map { it.uri }

    @Test
    fun `a map is chosen, outlives the process and is removed, and its file is not touched`() {
        val controller = Robolectric.buildActivity(MainActivity::class.java).setup()
        val activity = controller.get()
        fun press(id: Int) = activity.findViewById<View>(id).performClick()
        fun said() = activity.findViewById<TextView>(R.id.map_says).text.toString().plain()
        press(R.id.tab_track)
        idle()
        assertTrue("pmtiles extract" in said(), said())
        press(R.id.map_choose)
        val asked = shadowOf(activity).nextStartedActivityForResult
        assertEquals(Intent.ACTION_OPEN_DOCUMENT, asked.intent.action)
        val town = document("town.pmtiles", Maps.written("town"))
        shadowOf(activity).receiveResult(asked.intent, Activity.RESULT_OK, Intent().setData(town))
        idle()
        assertTrue(said().startsWith("© Nobody & contributors made up"), said())
        assertEquals(listOf(town), kept)
        fun scale() = activity.findViewById<View>(R.id.map).contentDescription.toString().substringAfter("scale: ")
        val whole = scale()
        press(R.id.map_closer)
        val closer = scale()
        assertNotEquals(whole, closer)
        press(R.id.map_closer)
        press(R.id.map_farther)
        assertEquals(closer, scale())
        press(R.id.map_whole)
        assertEquals(whole, scale())
        assertEquals(15, assertIs<MapState.Open>(opened()).tiles.zooms.last)
        val many = document("many.pmtiles", Maps.written("many"))
        runBlocking { app.map.choose(many) }
        assertEquals(listOf(many), kept)
        press(R.id.map_remove)
        idle()
        assertTrue("pmtiles extract" in said(), said())
        assertEquals(emptyList(), kept)
        assertNull(app.preferences.map)
        assertIs<MapState.None>(opened())
        assertEquals(Maps.written("many").length(), File(SharedFiles.folder(app), "many.pmtiles").length())
        controller.pause().stop().destroy()
    }

    @Test
    fun `a map that cannot be read says why, and what was moved is found again`() {
        val gone = document("gone.pmtiles", Maps.written("town"))
        val file = File(SharedFiles.folder(app), "gone.pmtiles")
        file.delete()
        runBlocking { app.map.choose(gone) }
        assertEquals(MapFault.UNREADABLE, assertIs<MapState.Failed>(app.map.state.value).fault)
        Maps.written("town").copyTo(file)
        runBlocking { app.map.open() }
        assertIs<MapState.Open>(app.map.state.value)
        file.writeText("SQLite format 3")
        assertEquals(MapFault.OTHER_FORMAT, assertIs<MapState.Failed>(opened()).fault)
        runBlocking { app.map.choose(Uri.parse("content://of.nobody/map")) }
        assertEquals(MapFault.UNREADABLE, assertIs<MapState.Failed>(app.map.state.value).fault)
        assertFalse(gone in kept)
    }
}
