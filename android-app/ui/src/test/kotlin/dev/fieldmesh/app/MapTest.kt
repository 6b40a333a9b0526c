package dev.fieldmesh.app

import android.app.Activity
import android.content.ContentProvider
import android.content.ContentValues
import android.content.Intent
import android.content.pm.ProviderInfo
import android.net.Uri
import android.os.Looper
import android.view.View
import android.widget.TextView
import dev.fieldmesh.core.Maps
import dev.fieldmesh.core.map.MapFault
import dev.fieldmesh.core.map.TileAt
import dev.fieldmesh.device.MapState
import dev.fieldmesh.device.SharedFiles
import dev.fieldmesh.device.StreetMap
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowContentResolver
import org.robolectric.shadows.ShadowToast
import java.io.File
import java.io.IOException
import kotlin.coroutines.CoroutineContext
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertNotEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertSame
import kotlin.test.assertTrue

/** Runs what it is given when it is told to. */
internal class Later : CoroutineDispatcher() {
    private val waiting = ArrayDeque<Runnable>()

    override fun dispatch(context: CoroutineContext, block: Runnable) {
        waiting += block
    }

    fun run(): Int = waiting.size.also { repeat(it) { waiting.removeFirst().run() } }

    fun runLast() = waiting.removeLast().run()
}

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
        assertIs<MapState.Open>(app.map.state.value)
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

    private val later = Later()
    private val slow = StreetMap(app.contentResolver, app.preferences, later)
    private val scope = CoroutineScope(Dispatchers.Unconfined)

    /** How often the process has a file open. */
    private fun opens(name: String) =
        File("/proc/self/fd").listFiles().orEmpty().count { it.canonicalPath.endsWith("/$name") }

    @Test
    fun `of two maps that are opened at once the one chosen last stays, and the other is closed`() {
        app.preferences.map = document("first.pmtiles", Maps.written("many")).toString()
        scope.launch { slow.open() }
        scope.launch { slow.choose(document("second.pmtiles", Maps.written("town"))) }
        later.runLast()
        later.run()
        assertEquals(15, assertIs<MapState.Open>(slow.state.value).tiles.zooms.last)
        assertEquals(0 to 1, opens("first.pmtiles") to opens("second.pmtiles"))
        scope.launch { slow.choose(null) }
        assertEquals(0, opens("second.pmtiles"))
    }

    @Test
    fun `a map that is being opened can be removed, and no other opens it again meanwhile`() {
        app.preferences.map = document("third.pmtiles", Maps.written("town")).toString()
        repeat(2) { scope.launch { slow.open() } }
        assertIs<MapState.Opening>(slow.state.value)
        scope.launch { slow.choose(null) }
        assertEquals(1, later.run(), "opened once")
        assertIs<MapState.None>(slow.state.value)
        assertEquals(0, opens("third.pmtiles"))
    }

    @Test
    fun `a map is opened though the screen that asked for it has gone`() {
        app.preferences.map = document("fourth.pmtiles", Maps.written("town")).toString()
        val turned = scope.launch { slow.open() }
        turned.cancel()
        later.run()
        assertIs<MapState.Open>(slow.state.value)
    }

    @Test
    fun `a map that cannot be read any more is opened again when the app is`() {
        runBlocking { app.map.choose(document("sixth.pmtiles", Maps.written("town"))) }
        val first = assertIs<MapState.Open>(app.map.state.value).tiles
        runBlocking { app.map.open() }
        assertSame(first, assertIs<MapState.Open>(app.map.state.value).tiles)
        first.close()
        val at = TileAt(15, 17603, 10747)
        assertFailsWith<IOException> { first.tile(at) }
        runBlocking { app.map.open() }
        assertNotNull(assertIs<MapState.Open>(app.map.state.value).tiles.tile(at))
    }

    @Test
    fun `whatever another app answers, the map is unreadable, and the app lives`() {
        val answers = listOf(
            IllegalArgumentException("no such row"),
            IllegalStateException(),
            UnsupportedOperationException(),
            NullPointerException(),
            SecurityException(),
        )
        var asked = 0
        for (answer in answers) {
            val provider = object : ContentProvider() {
                override fun onCreate() = true
                override fun openFile(uri: Uri, mode: String) = throw answer.also { asked++ }
                override fun getType(uri: Uri) = null
                override fun query(u: Uri, p: Array<String>?, s: String?, a: Array<String>?, o: String?) = null
                override fun insert(uri: Uri, values: ContentValues?) = null
                override fun delete(uri: Uri, selection: String?, arguments: Array<String>?) = 0
                override fun update(uri: Uri, v: ContentValues?, s: String?, a: Array<String>?) = 0
            }
            provider.attachInfo(
                app,
                ProviderInfo().apply {
                    authority = "of.another"
                    exported = true
                },
            )
            ShadowContentResolver.registerProviderInternal("of.another", provider)
            app.preferences.map = "content://of.another/map"
            assertEquals(MapFault.UNREADABLE, assertIs<MapState.Failed>(opened()).fault, "$answer")
        }
        assertEquals(answers.size, asked)
    }

    @Test
    fun `a phone on which nothing chooses files says so`() {
        val controller = Robolectric.buildActivity(MainActivity::class.java).setup()
        val activity = controller.get()
        activity.findViewById<View>(R.id.tab_track).performClick()
        shadowOf(app).checkActivities(true)
        activity.findViewById<View>(R.id.map_choose).performClick()
        assertEquals(app.getString(R.string.map_no_chooser), ShadowToast.getTextOfLatestToast())
        shadowOf(app).checkActivities(false)
        controller.pause().stop().destroy()
    }

    @Test
    fun `where a person moved the map to is found again after another tab and a turn of the phone`() {
        runBlocking { app.map.choose(document("fifth.pmtiles", Maps.written("town"))) }
        val controller = Robolectric.buildActivity(MainActivity::class.java).setup()
        fun press(id: Int) = controller.get().findViewById<View>(id).performClick()
        fun scale() = controller.get().findViewById<View>(R.id.map).contentDescription.toString()
            .substringAfter("scale: ").also { idle() }
        press(R.id.tab_track)
        idle()
        val whole = scale()
        press(R.id.map_closer)
        val closer = scale()
        assertNotEquals(whole, closer)
        press(R.id.tab_node)
        press(R.id.tab_track)
        idle()
        assertEquals(closer, scale())
        controller.recreate()
        idle()
        assertEquals(closer, scale())
        press(R.id.map_whole)
        controller.recreate()
        idle()
        assertEquals(whole, scale())
        controller.pause().stop().destroy()
    }
}
